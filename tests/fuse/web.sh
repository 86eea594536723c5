#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `varve web` answers a browser that has the token, from this machine alone, and sends nothing of a version as
# a page. It works beside a daemon, and clients that misbehave cost it nothing.
. "$(dirname "$0")/lib.sh"
trap '[ -z "${web:-}" ] || kill "$web" 2>/dev/null || true' EXIT  # After a failure, too.
command -v curl >/dev/null || skip "curl is missing"

tree=$work/tree
mkdir -p "$tree/folder"
seq 2000 >"$tree/folder/numbers"
head -c 3000000 /dev/urandom >"$tree/random"
truncate -s 5000000 "$tree/sparse"
evil=$'<img src=x onerror=alert(1)>\n\xff"\x1b[31m\r\nSet-Cookie: a=b'
printf '<script>alert(1)</script>' >"$tree/$evil"
printf '<script>alert(1)</script>' >"$tree/page.html"
ln -s 'javascript:alert(1)' "$tree/link"
mkfifo "$tree/fifo"
"$VARVE" init "$repo" >"$work/out"
"$VARVE" -q store "$repo" s/one "$tree" >"$work/out"
sed -i 's/^1000$/a thousand\tand one/' "$tree/folder/numbers"
"$VARVE" -q store "$repo" s/two "$tree" >"$work/out"
mount_repo

start_web() {
  : >"$work/url"
  "$VARVE" -q web "$@" >"$work/url" 2>"$work/web.log" &
  web=$!
  wait_until "the address is printed" test -s "$work/url"
  url=$(cat "$work/url")
  origin=${url%/\?*}
  token=${url#*token=}
  port=${origin##*:}
  # The token is exchanged for a cookie and for the folder of all pages.
  rm -f "$work/jar"
  curl -sS -m 20 -c "$work/jar" -D "$work/head" -o "$work/body" "$url"
  folder=$(sed -n 's|^Location: /\(.*\)/.$|\1|p' "$work/head")
  cookie=$(sed -n 's|^Set-Cookie: \([^;]*\);.*|\1|p' "$work/head")
  base=$origin/$folder
}
stop_web() {
  kill -TERM "$web"
  wait "$web"
}
get() { curl -sS --fail -m 20 -H "Cookie: $cookie" "$@"; }
status_of() { curl -sS -o "$work/body" -w '%{http_code}' -m 20 "$@"; }
is_status() {  # STATUS CURL-ARGUMENT…
  local want=$1 got
  shift
  got=$(status_of "$@") || true
  [ "$got" = "$want" ] || fail "status $got, not $want: $* ($(head -c 300 "$work/body"))"
}
start_web "$mnt"

# Half of its threads get a request of which each byte comes in time, but not the whole.
python3 - "$port" <<'PY' &
import socket, sys, time
slow = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(8)]
for one in slow:
    one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
for _ in range(24):
    time.sleep(0.4)
    for one in slow:
        one.sendall(b"x")
for one in slow:
    one.settimeout(5)
    answer = one.recv(100)
    assert answer.startswith(b"HTTP/1.1 408 "), answer
PY
slow=$!

# ---- Who is let in. ----

# The kernel's table of listening sockets has addresses and ports in hexadecimal digits.
awk -v port=":$(printf '%04X' "$port")" '$4 == "0A" && $2 ~ port "$" { print $2 }' \
  /proc/net/tcp /proc/net/tcp6 >"$work/listeners"
grep -q '^0100007F:' "$work/listeners"
! grep -vE '^(0100007F|0{24}01000000):' "$work/listeners" || fail "it listens elsewhere"
[ "$(stat -c %a "$repo")" = 700 ]
session=${cookie#*=}
for page in / /app.js /api/overview "/file?series=1&version=1&path=random" /nothing; do
  is_status 401 "$base$page"
  is_status 401 -H "Cookie: varve-$port=${session%?}x" "$base$page"
  is_status 401 -H "Cookie: varve-$port=$token; varve-$port=$folder" "$base$page"
  is_status 401 -H "Cookie: varve-$port=$session$session; varve-1=$session" "$base$page"
done
is_status 401 "$origin/?token=${token%?}0x"
is_status 401 "$origin/?token="
for host in example.org "example.org:$port" "127.0.0.1.example.org:$port" "localhost:x" "[::1" \
  "localhost@example.org" 0.0.0.0; do
  is_status 421 -H "Cookie: $cookie" -H "Host: $host" "$base/"
done
is_status 400 -H "Cookie: $cookie" -H "Host:" "$base/"
for host in "localhost:$port" "[::1]:$port" "localhost:9" 127.0.0.1; do
  is_status 200 -H "Cookie: $cookie" -H "Host: $host" "$base/"
done
ok "without the token, or under a foreign name, there is no answer"

# A server on another port of this host, which notes the cookies that it gets. curl sends cookies as
# browsers do: to each port of a host.
python3 - "$work/other" <<'PY' &
import http.server, os, sys
class Other(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(sys.argv[1] + ".cookies", "a") as file:
            file.write(self.headers.get("Cookie", "") + "\n")
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Other)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
PY
other=$!
wait_until "the other server listens" test -s "$work/other"
for page in / /api/overview /index.html; do
  is_status 204 -b "$work/jar" "http://127.0.0.1:$(cat "$work/other")$page"
done
kill "$other"
wait "$other" || true
# The cookie is of no use to that server, nor to a program that has the cookie in another way.
for got in "$(tr -d '\n' <"$work/other.cookies")" "$cookie"; do
  for page in / /api/overview "/?token=${got#*=}" "/${got#*=}/"; do
    is_status 401 -H "Cookie: $got" "$origin$page"
  done
done
[ -z "$(tr -d '\n' <"$work/other.cookies")" ] || fail "the cookie went to another port"
is_status 200 -b "$work/jar" "$base/api/overview"
ok "the cookie opens nothing for the server of another port"

is_status 303 -D "$work/head" "$url"
grep -qi "^Set-Cookie: $cookie; Path=/$folder/; HttpOnly; SameSite=Strict" "$work/head"
grep -qi "^Location: /$folder/.\?\$" "$work/head"
[ "$token" != "$session" ] && [ "$token" != "$folder" ] && [ "$session" != "$folder" ]
is_status 200 -D "$work/head" -H "Cookie: other=1; $cookie" "$base/"
for header in "Content-Security-Policy: default-src 'none'; script-src 'self'" \
  "X-Content-Type-Options: nosniff" "Cache-Control: no-store" "X-Frame-Options: DENY"; do
  grep -qiF "$header" "$work/head" || fail "no $header"
done
! grep -qE '<script>|onclick|style=' "$work/body" || fail "the page has a script or style inside"
ok "the token is exchanged for a cookie, and the page allows only its own script"

for method in POST PUT DELETE OPTIONS PROPFIND; do
  is_status 405 -X "$method" -H "Cookie: $cookie" "$base/"
done
is_status 413 -X GET -d data -H "Cookie: $cookie" "$base/"
curl -sS -I -m 20 -H "Cookie: $cookie" "$base/file?series=1&version=1&path=random" >"$work/head"
grep -qi '^Content-Length: 3000000' "$work/head"
is_status 431 -H "Cookie: $cookie" -H "X: $(head -c 20000 /dev/zero | tr '\0' x)" "$base/"
headers=()
for i in $(seq 1500); do headers+=(-H "X-$i: yyyyyyyyyy"); done
is_status 431 -H "Cookie: $cookie" "${headers[@]}" "$base/"
for target in '/%' '/%zz' '/?a=1&a=2' '/?%'; do
  is_status 400 -H "Cookie: $cookie" "$base$target"
done
for target in / /%2e%2e/%2e%2e/etc/passwd //etc/passwd /style.css/ /index.html/x; do
  got=$(status_of --path-as-is -H "Cookie: $cookie" "$base$target/../../../../etc/passwd")
  [ "$got" = 404 ] || fail "$target: $got"
done
ok "other methods, bodies, large and malformed requests are refused"

# ---- What is sent. ----

at="series=1&version=2"
get "$base/file?$at&path=random" | cmp - "$tree/random"
get "$base/file?$at&path=/folder//numbers/" | cmp - "$tree/folder/numbers"
get -r 1000000-1999999 "$base/file?$at&path=random" |
  cmp - <(head -c 2000000 "$tree/random" | tail -c 1000000)
get -r -10 "$base/file?$at&path=random" | cmp - <(tail -c 10 "$tree/random")
get -r 2999990- "$base/file?$at&path=random" | cmp - <(tail -c 10 "$tree/random")
is_status 416 -r 3000000-3000001 -H "Cookie: $cookie" "$base/file?$at&path=random"
get -r 0-1,5-6 "$base/file?$at&path=random" | cmp - "$tree/random"
raw='%3Cimg%20src=x%20onerror=alert(1)%3E%0A%FF%22%1B%5B31m%0D%0ASet-Cookie:%20a=b'
for path in "$raw" page.html; do
  get -D "$work/head" "$base/file?$at&path=$path" >"$work/body"
  [ "$(cat "$work/body")" = '<script>alert(1)</script>' ]
  grep -qi '^Content-Type: application/octet-stream' "$work/head"
  grep -qi '^Content-Disposition: attachment; ' "$work/head"
  ! grep -qiE '^Set-Cookie' "$work/head" || fail "a name became a header"
done
grep -qF "filename*=UTF-8''page.html" "$work/head"
for path in ../../etc/passwd folder/../random folder/. link/x %00 random%00 folder%2F..%2Frandom \
  nothing; do
  is_status 404 -H "Cookie: $cookie" "$base/file?$at&path=$path"
done
for path in folder link fifo; do
  is_status 400 -H "Cookie: $cookie" "$base/file?$at&path=$path"
done
for query in "" "series=1" "series=x&version=1" "series=99999999999&version=1" \
  "series=-1&version=1"; do
  is_status 400 -H "Cookie: $cookie" "$base/file?$query"
done
is_status 404 -H "Cookie: $cookie" "$base/file?series=9&version=1&path=random"
is_status 404 -H "Cookie: $cookie" "$base/file?series=1&version=9&path=random"
ok "files come as attachments, in parts too, and only files of the version"

mkdir "$work/tar" "$work/zip"
get "$base/tar?$at&path=" | tar -xf - -C "$work/tar"
same_tree "$tree" "$work/tar"
get "$base/zip?$at&path=" >"$work/all.zip"
python3 - "$work/all.zip" "$work/zip" <<'PY'
import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
names = set(archive.namelist())
assert r'<img src=x onerror=alert(1)>\x0a\xff"\x1b[31m\x0d\x0aSet-Cookie: a=b' in names, names
assert "fifo" not in names and len(names) == 7, names
archive.extractall(sys.argv[2])
PY
for file in folder/numbers random sparse page.html; do cmp "$tree/$file" "$work/zip/$file"; done
get "$base/zip?$at&path=folder" >"$work/folder.zip"
[ "$(python3 -m zipfile -l "$work/folder.zip" | grep -c numbers)" -eq 1 ]
ok "a folder comes as tar with everything, and as zip"

get "$base/api/tree?$at&path=" >"$work/tree.json"
get "$base/api/tree?series=1&version=1&path=random" >"$work/first.json"
get "$base/api/overview" >"$work/overview.json"
get "$base/api/versions?series=1" >"$work/versions.json"
get "$base/api/space?series=1" >"$work/space.json"
get "$base/api/history?series=1&path=folder/numbers" >"$work/history.json"
get "$base/api/diff?series=1&before=1&after=2&path=folder/numbers" >"$work/diff.json"
get "$base/api/diff?series=1&before=1&after=2&path=random" >"$work/large.json"
python3 - "$work" <<'PY'
import json, sys
def load(name):
    with open("%s/%s.json" % (sys.argv[1], name)) as file:
        return json.load(file)
entries = {entry["name"]: entry for entry in load("tree")["entries"]}
assert entries["link"]["target"] == "javascript:alert(1)", entries
assert all(ord(c) >= 32 for name in entries for c in name), entries
assert load("tree")["previous"] == {"number": 1, "name": "one", "has": True}, load("tree")["previous"]
assert "next" not in load("tree") and "previous" not in load("first")
assert load("first")["next"] == {"number": 2, "name": "two", "has": True}, load("first")["next"]
assert load("overview")["series"][0]["versions"] == 2 and load("overview")["health"]
versions = load("versions")["versions"]
assert [version["name"] for version in versions] == ["two", "one"], versions
assert all(version["time"] == version["sealed"] for version in versions), versions
assert versions[0]["logical_change"] == 14 and versions[0]["entries_change"] == 0, versions
space = load("space")
assert len(space["versions"]) == 2 and space["categories"], space
assert [one["change"] for one in load("history")["versions"]] == ["changed", "new"]
changes = [(line["kind"], line["text"]) for line in load("diff")["lines"] if line["kind"] in "+-"]
assert changes == [("-", "1000"), ("+", "a thousand\tand one")], changes
assert len(load("diff")["lines"]) == 10
assert load("large")["reason"] == "it has more than 1.0 MiB" and "lines" not in load("large")
PY
ok "listings, sizes, history and a difference have what the versions have"

# ---- Long lists. ----

many=$work/many
python3 - "$many" <<'PY'
import os, sys
os.makedirs(sys.argv[1] + "/old folder")
names = [b"%d-%%41+&#?\n\xff<i>" % i for i in range(700)]
for name in names:
    with open(os.path.join(os.fsencode(sys.argv[1]), b"old folder", name), "wb"):
        pass
PY
"$VARVE" -q store "$mnt" many/one "$many" >"$work/out"
mv "$many/old folder" "$many/new"
seq 9 >"$many/README"
"$VARVE" -q store "$mnt" many/two "$many" >"$work/out"
"$VARVE" -q diff --json "$mnt/many/one" "$mnt/many/two" >"$work/diff.json"
"$VARVE" -q find --json "$mnt" '*%41*' >"$work/find.json"
python3 - "$base" "$cookie" "$work" <<'PY'
import json, sys, urllib.error, urllib.request
base, cookie, work = sys.argv[1:]
def get(path):
    request = urllib.request.Request(base + "/api/" + path, headers={"Cookie": cookie})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)
def lines(name, kind):
    with open("%s/%s.json" % (work, name)) as file:
        return [one for one in map(json.loads, file) if one["message_type"] == kind]
rows, pages, behind = [], 0, ""
while behind is not None:
    answer = get("changes?series=2&before=1&after=2" + behind)
    rows += answer["changes"]
    pages += 1
    behind = "&behind=" + answer["behind"] if "behind" in answer else None
assert pages == 3, pages
expected = lines("diff", "change")
assert len(rows) == len(expected) == 1404, (len(rows), len(expected))
assert [row["change"] for row in rows] == [one["change"] for one in expected]
assert all(ord(c) >= 32 for row in rows for c in row["path"])

def search(query):
    found, end, pages = [], "", 0
    while end is not None:
        answer = get("search?name=" + query + end)
        found += answer["found"]
        pages += 1
        end = "".join("&%s=%s" % one for one in answer["end"].items()) if "end" in answer else None
    return found, pages
found, pages = search("%2541")
assert pages > 7, pages
places = [(one["version"]["name"], one["raw"]) for one in found]
assert len(places) == len(set(places)) == 1400 == len(lines("find", "entry")), len(places)
assert {place[0] for place in places} == {"one", "two"}
# A name that two versions have counts once, with the newest; letters of either case are equal.
for query in "readme", "EADM", "/ReadMe", "README", "R*E", "numBERS&series=1", "der/numb":
    found, pages = search(query)
    assert len(found) == 1 and pages == 1, (query, found)
    assert found[0]["version"]["name"] == "two", found
found, _ = search("old%20F")
assert [(one["path"], one["version"]["name"]) for one in found] == [("old folder", "one")], found
assert search("nothing")[0] == [] and search("/old*&series=1")[0] == []
for path, status in (("search?name=", 400), ("search", 400), ("search?name=" + "x" * 257, 400), ("search?name=[a", 400),
                     ("search?name=x&series=9", 404), ("search?name=x&from_series=2", 400),
                     ("changes?series=2&before=1", 400), ("changes?series=2&before=1&after=9", 404)):
    try:
        get(path)
        sys.exit("%s is answered" % path)
    except urllib.error.HTTPError as error:
        assert error.code == status, (path, error.code)
PY
ok "differences and found names come page by page, each once, as \`varve diff\` and \`find\` list them"

# ---- Beside a daemon. ----

mkdir "$mnt/s/three"
echo new >"$mnt/s/three/file"
get "$base/api/overview" >"$work/overview.json"
python3 -c '
import json, sys
open = [one["name"] for one in json.load(sys.stdin)["series"][0]["open"]]
assert open == ["three"], open' <"$work/overview.json"
"$VARVE" seal "$mnt/s/three" >"$work/out"
[ "$(get "$base/file?series=1&version=3&path=file")" = new ]
"$VARVE" -q rm "$mnt/s/one" >"$work/out"
is_status 404 -H "Cookie: $cookie" "$base/file?series=1&version=1&path=random"
ok "it shows what a daemon opens, seals and deletes meanwhile"

# ---- Clients that misbehave. ----

wait "$slow"
# More connections than it takes, which send no request, a part of one or one without the token, and
# downloads that nothing reads: a browser with the token gets its page meanwhile.
python3 - "$port" "$cookie" "$folder/tar?$at" "$work/crowded" <<'PY' &
import socket, sys, time
port, cookie, tar, crowded = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
def connect(text):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(20)
    one.connect(("127.0.0.1", port))
    one.sendall(text)
    return one
head = b" HTTP/1.1\r\nHost: localhost\r\n"
wanted = f"GET /{tar}&path=".encode() + head + f"Cookie: {cookie}\r\n\r\n".encode()
downloads = [connect(wanted) for _ in range(20)]
refused = sum(one.recv(12) == b"HTTP/1.1 503" for one in downloads)
assert refused == 8, refused
parts = (b"", b"GET /" + head, b"GET /" + head + b"\r\n")
idle = [connect(part) for _ in range(100) for part in parts]
open(crowded, "w").close()
time.sleep(60)
PY
crowd=$!
for i in $(seq 150); do
  [ ! -e "$work/crowded" ] || break
  kill -0 "$crowd" || fail "the crowd has gone"
  sleep 0.1
done
[ -e "$work/crowded" ] || fail "the crowd does not get in"
for i in 1 2 3; do get -m 5 -o "$work/body" "$base/"; done
kill "$crowd"
wait "$crowd" || true
# A browser that ends a download ends nothing else.
for i in 1 2 3 4 5; do
  get "$base/tar?$at&path=" 2>/dev/null | head -c 1000 >"$work/out" || true
done
kill -0 "$web"
kilobytes=$(awk '/^VmHWM/ { print $2 }' "/proc/$web/status")
under_sanitizer || [ "$kilobytes" -lt 300000 ] || fail "it took $kilobytes KiB"
ok "slow clients get ten seconds, and a download may be ended"

seconds=$SECONDS
exec 3<>"/dev/tcp/127.0.0.1/$port"
kill -TERM "$web"
wait "$web"
[ $((SECONDS - seconds)) -le 5 ] || fail "it took $((SECONDS - seconds)) s to end"
exec 3>&-
ok "a signal ends it with status 0, whatever is connected"

start_web --port 0 "$repo"
expect_status 1 "$VARVE" web --port "$port" "$repo"
message_says "port is taken"
expect_status 10 "$VARVE" web "$work/tree"
expect_status 2 "$VARVE" web
stop_web
unmount_repo
ok "a taken port and a missing repository are errors"

# ---- Claimed times. ----

"$VARVE" -q init "$work/dated"
mkdir "$work/some" && echo text >"$work/some/only-in-old"
"$VARVE" -q store "$work/dated" home/mid "$tree"
"$VARVE" -q store --allow-shrunk --time 1999-01-01 "$work/dated" home/old "$work/some"
mv "$work/some/only-in-old" "$work/some/a"
"$VARVE" -q store --allow-shrunk --time 1998-01-01 "$work/dated" home/older "$work/some"
"$VARVE" -q store "$work/dated" home/last "$tree"
start_web "$work/dated"
python3 - "$base" "$cookie" <<'PY'
import json, sys, urllib.request
def get(path):
    request = urllib.request.Request(sys.argv[1] + "/api/" + path, headers={"Cookie": sys.argv[2]})
    return json.load(urllib.request.urlopen(request, timeout=20))
assert get("overview")["series"][0]["newest"]["name"] == "last"
def names(query, api="versions"):
    return [one["name"] for one in get(api + "?series=1" + query)["versions"]]
ordered = ["last", "mid", "old", "older"]
assert names("") == names("", "space") == ordered, names("")
assert names("&below=1") == ["old", "older"] and names("&below=3") == [] == names("&below=0")
versions = {one["name"]: one for one in get("versions?series=1")["versions"]}
assert versions["last"]["entries_change"] == 0 and versions["mid"]["before"] == 2, versions
assert versions["mid"]["entries_change"] > 0 and "before" not in versions["older"], versions
mid, older = (get("tree?series=1&version=%d&path=" % number) for number in (1, 3))
assert (mid["previous"]["name"], mid["next"]["name"]) == ("old", "last"), mid
assert older["next"]["name"] == "old" and "previous" not in older, older
def found(query):
    return [one["version"]["name"] for one in get("search?name=" + query)["found"]]
assert found("numbers") == ["last"] and found("only-in-old&from_series=1&from_version=2") == ["old"]
assert found("only-in-old&from_series=1&from_version=3") == []
assert names("&path=folder/numbers", "history") == ["last", "mid"]
PY
is_status 404 -H "Cookie: $cookie" "$base/api/versions?series=1&below=9"
is_status 404 -H "Cookie: $cookie" "$base/api/search?name=x&from_series=1&from_version=9"
"$VARVE" -q rm "$work/dated" home/last
get "$base/api/overview" | grep -q '"newest":{[^}]*"name":"mid"' || fail "an old version is the newest"
stop_web
ok "versions stand in the order of their claimed times"

# ---- Damage. ----

# Each frame of version 2's new data is in the newest segment; random bytes change some.
start_web "$repo"
segment=$(find "$repo/series" -name '*.seg' -size +2000k | head -n 1)
printf 'damage damage' | dd of="$segment" bs=1 seek=2000000 conv=notrunc status=none
for what in "file?$at&path=random" "tar?$at&path=" "zip?$at&path="; do
  expect_status 18 curl -sS -m 20 -o "$work/body" -H "Cookie: $cookie" "$base/$what"
done
stop_web
grep -q 'the download failed' "$work/web.log"
ok "damage makes a download fail, and never ends it as if it were whole"
