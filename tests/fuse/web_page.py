#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the page of `varve web` in Chromium: every view, on a wide and a narrow window, in light and dark.

usage: web_page.py ADDRESS     (with the token)

Checks what the views say, that nothing is wider than the window, that no script or style of another
place runs, that the browser reports no error, and that the keyboard reaches the links. With
VARVE_TEST_SCREENSHOTS=FOLDER, leaves a screenshot of each view there.
"""

import base64
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-default-apps", "--disable-dev-shm-usage", "--remote-debugging-pipe")
NAMES = "chromium", "chromium-browser", "google-chrome"


class Browser:
    """One page of a browser, controlled by the DevTools protocol over two pipes."""

    def __init__(self, program, folder):
        read_theirs, write_ours = os.pipe()
        read_ours, write_theirs = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        command = ["sh", "-c", "exec 3<&%d 4>&%d; exec \"$@\"" % (read_theirs, write_theirs), "sh",
                   program, *FLAGS, "--user-data-dir=" + folder, "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(read_theirs, write_theirs),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_theirs)
        os.close(write_theirs)
        self.out, self.into = os.fdopen(write_ours, "wb", 0), os.fdopen(read_ours, "rb")
        self.number, self.session, self.problems, self.rest = 0, None, [], b""
        target = self.call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in target if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            piece = self.into.read1(65536)
            if not piece:
                sys.exit("FAILED: the browser ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        self.out.write(json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit("FAILED: %s: %s" % (method, answer["error"]))
                return answer["result"]
            self.note(answer)

    def note(self, event):
        method, values = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(values["exceptionDetails"])[:400])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            if "favicon.ico" not in json.dumps(values):
                self.problems.append(json.dumps(values["entry"])[:400])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append("a script of a version ran")
            # The dialog would stop everything.
            self.out.write(json.dumps({"id": 0, "sessionId": self.session, "method": "Page.handleJavaScriptDialog",
                                       "params": {"accept": True}}).encode() + b"\0")

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit("FAILED: %s: %s" % (expression, result["exceptionDetails"]))
        return result["result"].get("value")

    def go(self, address):
        """Opens an address and waits until the view is drawn."""
        self.call("Page.navigate", url=address)
        drawn = """new Promise((done, failed) => {
            const started = Date.now();
            const look = () => {
              const main = document.getElementById("main");
              if (main && main.dataset.view === location.hash.slice(1)) done(true);
              else if (Date.now() - started > 15000) done(false);
              else setTimeout(look, 20);
            };
            look();
          })"""
        check(self.value(drawn), "%s is not drawn" % address)

    def key(self, key, code):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      text="\r" if key == "Enter" and kind == "keyDown" else "")

    def close(self):
        self.session = None
        self.out.write(json.dumps({"id": 1 << 30, "method": "Browser.close"}).encode() + b"\0")
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


VIEWS = (
    ("overview", "/", ("Find in all versions", "Backups in", "laptop", "Repository in all", "No check was recorded")),
    ("timeline", "/series/1", ("laptop", "find in this series", "+390.6 KiB", "newest first", "first", "second", "New data")),
    ("space", "/space/1", ("What each version uses", "Categories")),
    ("folder", "/tree/1/2/", ("laptop/second", "← first", "<img src=x onerror=alert(1)>", "javascript:alert(1)")),
    ("older", "/tree/1/1/folder", ("second →",)),
    ("only-here", "/tree/1/2/folder/random", ("← first (without it)",)),
    ("changes", "/changes/1/1/2", ("From first to second", "\\x1b[31m", "removed", "<b>new", "added", "folder/random",
                                   "binary", "changed", "Compare", "History")),
    ("search", "/search//NEW", ("Find NEW", "<b>new", "laptop / second", "Download")),
    ("search-gone", "/search/1/col%6Fur", ("1 name", "\\x1b[31m", "laptop / first", "Find in this series")),
    ("search-hostile", "/search//%3Cimg%20src", ("<img src=x onerror=alert(1)>", "laptop / second")),
    ("search-none", "/search//nothing%FF", ("none is to be listed",)),
    ("search-bad", "/search//%5Ba", ("This did not work",)),
    ("file", "/tree/1/2/text", ("text", "Download (", "-rw-r--r--")),
    ("history", "/history/1/text", ("2 versions have it", "appeared", "changed", "Compare")),
    ("difference", "/diff/1/1/2/text", ("<script>alert(2)</script>", "equal lines are left out")),
    ("binary", "/diff/1/1/2/binary", ("cannot be compared as text: it is binary",)),
    ("missing", "/tree/1/9/", ("This did not work",)),
    ("nowhere", "/nowhere", ("There is no such page",)),
)


def look(browser, base, width, scheme, shots):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                 mobile=False)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    grounds = set()
    for view, place, words in VIEWS:
        browser.go(base + "/#" + place)
        said = browser.value("document.getElementById('main').innerText")
        for word in words:
            check(word.lower() in said.lower(), "%s does not say %r but:\n%s" % (view, word, said))
        wide = browser.value("[...document.querySelectorAll('body *')].filter((one) => { const box = "
                             "one.getBoundingClientRect(); return box.width && box.right > innerWidth + 1 && "
                             "!one.closest('.skip, thead'); }).map((one) => one.outerHTML.slice(0, 80))")
        check(not wide and browser.value("document.documentElement.scrollWidth <= innerWidth"),
              "%s is wider than %d: %s" % (view, width, wide))
        foreign = browser.value("[...document.querySelectorAll('main script, main img, main style, main "
                                "iframe, main [onerror], main a[href^=javascript]')].length")
        check(foreign == 0, "%s has elements of a version" % view)
        if view not in ("missing", "search-bad"):
            check(not browser.problems, "%s: %s" % (view, browser.problems))
        browser.problems.clear()
        grounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
        if shots:
            data = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
            with open(os.path.join(shots, "%s-%d-%s.png" % (view, width, scheme)), "wb") as file:
                file.write(base64.b64decode(data))
    check(len(grounds) == 1, "the views have different grounds: %s" % grounds)
    print("ok - %d views at %d pixels in %s" % (len(VIEWS), width, scheme), flush=True)
    return grounds.pop()


def use_keyboard(browser, base):
    browser.call("Page.navigate", url="about:blank")  # A fresh page has no focus yet.
    browser.go(base + "/#/")
    reached = []
    for _ in range(6):
        browser.key("Tab", 9)
        reached.append(browser.value("document.activeElement.textContent"))
        check(browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none",
              "the focus on %r cannot be seen" % reached[-1])
        if reached[-1] == "laptop":
            break
    check(reached[0] == "Skip to the content" and reached[-1] == "laptop", "Tab reaches %s" % reached)
    browser.key("Enter", 13)
    drawn = "new Promise((done) => setTimeout(() => done(document.getElementById('main').innerText), 500))"
    check("newest first" in browser.value(drawn), "Enter does not open a series")
    check(browser.value("document.activeElement.id") == "main", "a new view does not get the focus")
    print("ok - the keyboard opens a series")
    for _ in range(8):
        browser.key("Tab", 9)
        if browser.value("document.activeElement.id") == "search":
            break
    browser.call("Input.insertText", text="RANDOM</b>%")
    browser.key("Enter", 13)
    check("none is to be listed" in browser.value(drawn), "Enter does not search")
    check(browser.value("location.hash") == "#/search/1/RANDOM%3C%2Fb%3E%25", "the text is not encoded")
    browser.go(base + "/#/changes/1/1/2")
    browser.value("(() => { const list = document.querySelector('select'); list.value = '2'; "
                  "list.dispatchEvent(new Event('change')); })()")
    check("none is to be listed" in browser.value(drawn), "a version does not differ from itself")
    check(browser.value("location.hash") == "#/changes/1/2/2", "the list of versions opens nothing")
    print("ok - names are searched, and versions chosen")
    browser.go(base + "/#/tree/1/1/text")
    browser.value("document.querySelector('nav.neighbours a').click()")
    check("laptop" in browser.value(drawn) and browser.value("location.hash") == "#/tree/1/2/text",
          "the next version is not shown")
    browser.go(base + "/#/tree/1/2/folder/random")
    check(browser.value("document.querySelector('nav.neighbours a').getAttribute('href')") == "#/tree/1/1/",
          "a version without the file is not opened at its top")
    browser.go(base + "/#/space/1")
    check("still in use" not in browser.value("document.getElementById('main').innerText"), "the categories are open")
    browser.value("document.querySelector('summary').click()")
    check("still in use" in browser.value(drawn), "the categories do not open")
    print("ok - neighbours of a version open, and the categories unfold")


class OtherPort(http.server.BaseHTTPRequestHandler):
    """The server of another port of 127.0.0.1, which keeps the cookies that browsers send it."""

    cookies = []

    def do_GET(self):
        self.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<title>other</title>")

    def log_message(self, *_):
        pass


def status_of(address, cookie):
    request = urllib.request.Request(address, headers={"Cookie": cookie})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def visit_other_port(browser, origin, home):
    """The browser visits another port, whose server then tries what it got."""
    server = http.server.HTTPServer(("127.0.0.1", 0), OtherPort)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for page in "/", "/api/overview":
        browser.call("Page.navigate", url="http://127.0.0.1:%d%s" % (server.server_port, page))
        check(browser.value("new Promise((done) => setTimeout(() => done(document.title), 300))") == "other",
              "the other port does not answer")
    server.shutdown()
    check(len(OtherPort.cookies) >= 2, "the browser did not come")
    for cookie in OtherPort.cookies:
        for page in "/", "/api/overview":
            check(status_of(origin + page, cookie) == 401, "another port's server gets in with %r" % cookie)
    check(not any(OtherPort.cookies), "another port gets cookies: %s" % OtherPort.cookies)
    browser.go(home + "/#/")  # The browser itself is still let in.
    browser.problems.clear()
    print("ok - another port of this machine gets no cookie")


def main():
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if not program:
        print("skipped: there is no Chromium")
        sys.exit(77)
    address = sys.argv[1]
    origin = address.partition("/?")[0]
    shots = os.environ.get("VARVE_TEST_SCREENSHOTS")
    folder = tempfile.mkdtemp(prefix="varve-browser.", dir=os.environ.get("VARVE_TEST_TMP", "/var/tmp"))
    browser = Browser(program, folder)
    try:
        browser.call("Page.navigate", url=origin)
        said = browser.value("new Promise((done) => setTimeout(() => done(document.body.innerText), 300))")
        check("it has a token" in said, "without the token, the page says %r" % said)
        browser.problems.clear()
        browser.go(address)
        check("token" not in browser.value("location.href"), "the token stays in the address")
        base = browser.value("location.href").partition("#")[0].rstrip("/")
        check(base != origin, "the pages are not in a folder")
        check(browser.value("document.cookie") == "", "scripts can read the token")
        grounds = {scheme: [look(browser, base, width, scheme, shots) for width in (1400, 360)]
                   for scheme in ("light", "dark")}
        check(grounds["light"] != grounds["dark"], "light and dark are the same")
        use_keyboard(browser, base)
        visit_other_port(browser, origin, base)
    finally:
        browser.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
