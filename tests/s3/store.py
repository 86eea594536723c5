#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small object store for tests, which speaks S3 on the loopback interface.

It was written from Amazon's S3 API Reference and shares no code with Varve: it checks every
signature and checksum by its own means. It prints `port N`, and then obeys commands on standard
input, each answered by a line:

  set NAME VALUE          a setting (see Store); 0 and 1 for switches
  fault KIND AT COUNT     requests number AT to AT+COUNT-1 from now on fail (see FAULTS)
  lose TEXT               forgets the objects whose names contain TEXT; prints their number
  rot TEXT                changes a byte of each object whose name contains TEXT; prints their number
  replace TEXT            as rot, but the ETag changes too, as by a put of another program
  cut TEXT                halves each object whose name contains TEXT; prints their number
  names TEXT              prints the names that contain TEXT, or end with TEXT if a `$` follows it
  save TEXT               remembers the objects whose names contain TEXT
  undo                    has the remembered objects again, and no others of their names' text
  requests                prints the number of requests since the last `fault`
  objects                 prints the number of objects and of unfinished uploads
  locks TEXT              prints how many objects whose names contain TEXT are locked, how many are
                          not, and how many days the first of these locks lasts, rounded
  unlock TEXT             takes the locks from the objects whose names contain TEXT
  extensions              prints how many locks were extended since the last `fault`
  versions                prints the number of older versions
  most                    prints how many requests were in progress at once since the last `fault`
It ends with its standard input. With the argument --tls, it speaks HTTPS with a certificate for
127.0.0.1 that no authority has signed, test-certificate.pem.
"""

import base64
import datetime
import email.utils
import hashlib
import hmac
import http.server
import pathlib
import re
import ssl
import sys
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

from store_harm import harm
from store_locks import Locks, Refused, is_locked

BUCKET = "varve-test"
KEY_ID = "AKIDTEST"
SECRET = "secret/of+the=test"
ALTERED_EVERY = 16 << 10
UNRESERVED_AND_SLASH = "-_.~/"

# busy, slow_down, timeout, conflict, throttled: refused before anything happens.
# reset: the connection ends before anything happens. lost: the request is carried out, and the
# connection ends. lost_error: carried out, and answered by status 500. hang: no answer, and nothing
# happens. cut: half of the body of an answer. altered: a bit of each 16 KiB of a range is changed on
# its way. expired: the credentials have expired.
FAULTS = {
    "busy": (503, "ServiceUnavailable"), "slow_down": (503, "SlowDown"),
    "timeout": (408, "RequestTimeout"), "conflict": (409, "OperationAborted"),
    "throttled": (429, "TooManyRequests"), "error": (500, "InternalError"),
    "expired": (400, "ExpiredToken"),
    "reset": None, "lost": None, "lost_error": None, "hang": None, "cut": None, "slow": None,
    "altered": None,
}


class Store:
    def __init__(self):
        self.lock = threading.Lock()
        self.objects, self.uploads, self.last_upload = {}, {}, 0
        self.fault, self.at, self.count, self.requests = None, 0, 0, 0
        self.running, self.most = 0, 0
        self.ended = threading.Event()
        # Settings.
        self.ignores_conditions = 0
        self.condition_gap_ms = 0  # The time between looking for an object and writing it.
        self.region = "us-east-1"
        self.clock_offset = 0   # Seconds that this store's clock is ahead.
        self.quota = 1 << 40    # Bytes of all objects.
        self.slow_ms = 1000     # The wait of the fault `slow`.
        self.token = ""         # The session token that requests must have.
        self.removes = 1        # 0: the credentials may not remove.
        # 1: the bucket has object lock, and so keeps versions. 2: it has locks, and no versions.
        # 3: it accepts locks, and ignores them.
        self.lock_kind = 0
        self.older, self.last_version, self.extensions = [], 0, 0
        self.saved = ("", {})

    def now(self):
        return time.time() + self.clock_offset

    def next_fault(self):
        with self.lock:
            number, self.requests = self.requests, self.requests + 1
            return self.fault if self.at <= number < self.at + self.count else None

    def obey(self, line):
        words = line.split()
        with self.lock:
            if words[0] == "set":
                old = getattr(self, words[1])
                setattr(self, words[1], type(old)(words[2]) if len(words) > 2 else "")
                return "ok"
            if words[0] == "fault":
                if words[1] not in FAULTS:
                    return f"no fault {words[1]}"
                self.fault, self.at, self.count = words[1], int(words[2]), int(words[3])
                self.requests = self.most = self.extensions = 0
                return "ok"
            if words[0] in ("lose", "rot", "replace", "cut", "names", "save", "undo"):
                return harm(self, *words)
            if words[0] in ("locks", "unlock"):
                named = [o for key, o in self.objects.items() if words[1] in key]
                if words[0] == "unlock":
                    for one in named:
                        one["lock"] = None
                    return str(len(named))
                ends = [o["lock"][1] - self.now() for o in named if is_locked(self, o)]
                days = round(min(ends) / 86400) if ends else 0
                return f"{len(ends)} {len(named) - len(ends)} {days}"
            if words[0] == "extensions":
                return str(self.extensions)
            if words[0] == "versions":
                return str(len(self.older))
            if words[0] == "requests":
                return str(self.requests)
            if words[0] == "most":
                return str(self.most)
            if words[0] == "objects":
                return f"{len(self.objects)} {len(self.uploads)}"
        return "unknown command"


def hmac_sha256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(Locks, http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store = None

    def log_message(self, *_):
        pass

    def check_signature(self, body):
        """Computes the signature from the request as it arrived."""
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,\s*"
            r"SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not match:
            raise Refused(403, "AccessDenied", "no signature")
        key_id, day, region, names, signature = match.groups()
        if key_id != KEY_ID:
            raise Refused(403, "InvalidAccessKeyId")
        if region != self.store.region:
            raise Refused(400, "AuthorizationHeaderMalformed", "wrong region",
                          f"<Region>{self.store.region}</Region>")
        raw_path, _, raw_query = self.path.partition("?")
        path = urllib.parse.unquote(raw_path, errors="strict")
        if urllib.parse.quote(path, safe=UNRESERVED_AND_SLASH) != raw_path:
            raise Refused(400, "InvalidURI", f"the path {raw_path} is not encoded as its signature")
        query = sorted((urllib.parse.quote(name, safe="-_.~"), urllib.parse.quote(value, safe="-_.~"))
                       for name, value in urllib.parse.parse_qsl(raw_query, True, True))
        names = names.split(";")
        needed = {"host", "x-amz-date", "x-amz-content-sha256"} | {
            name.lower() for name in self.headers
            if name.lower().startswith("x-amz-") or name.lower() == "content-md5"}
        if names != sorted(names) or not needed <= set(names):
            raise Refused(403, "AccessDenied", f"headers are not signed: {needed - set(names)}")
        lines = "".join(f"{n}:{' '.join(self.headers[n].split())}\n" for n in names)
        payload = self.headers["x-amz-content-sha256"]
        stamp = self.headers["x-amz-date"]
        canonical = "\n".join([self.command, raw_path, "&".join("=".join(q) for q in query), lines,
                               ";".join(names), payload])
        scope = f"{day}/{region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + SECRET).encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac_sha256(key, part)
        if hmac_sha256(key, to_sign).hex() != signature or not stamp.startswith(day):
            raise Refused(403, "SignatureDoesNotMatch")
        sent = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs(sent.timestamp() - self.store.now()) > 900:
            raise Refused(403, "RequestTimeTooSkewed")
        if self.headers.get("x-amz-security-token", "") != self.store.token:
            raise Refused(400, "ExpiredToken")
        if hashlib.sha256(body).hexdigest() != payload:
            raise Refused(400, "XAmzContentSHA256Mismatch")
        md5 = self.headers.get("content-md5")
        if md5 and base64.b64encode(hashlib.md5(body).digest()).decode() != md5:
            raise Refused(400, "BadDigest")
        return path, dict(urllib.parse.parse_qsl(raw_query, True, True))

    def answer(self, status, body=b"", headers=(), cut=False):
        self.send_response_only(status)
        self.send_header("Date", email.utils.formatdate(self.store.now(), usegmt=True))
        headers = dict(headers)
        if status != 204:
            headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:len(body) // 2] if cut else body)

    def handle_one(self):
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length)) if length else b""
        fault = self.store.next_fault()
        if fault == "hang":
            self.store.ended.wait()
        if fault == "slow":
            time.sleep(self.store.slow_ms / 1000)
        if fault in ("reset", "hang"):
            self.close_connection = True
            return
        try:
            if fault and FAULTS[fault]:
                raise Refused(*FAULTS[fault])
            path, query = self.check_signature(body)
            status, out, headers = self.carry_out(path, query, body)
            if fault == "lost_error":
                raise Refused(500, "InternalError")
        except Refused as refused:
            status, headers = refused.status, dict(refused.headers)
            out = (f"<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{refused.code}</Code>"
                   f"<Message>{escape(refused.message)}</Message>{refused.more}</Error>").encode()
        if fault == "lost":
            self.close_connection = True
            return
        if fault == "cut":
            self.close_connection = True
        if fault == "altered" and status == 206:
            out = bytearray(out)
            for at in range(0, len(out), ALTERED_EVERY):
                out[min(at + 1000, len(out) - 1)] ^= 0x10
        self.answer(status, out, headers, fault == "cut")

    def handle_quietly(self):
        store = self.store
        with store.lock:
            store.running += 1
            store.most = max(store.most, store.running)
        try:
            self.handle_one()
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True
        finally:
            with store.lock:
                store.running -= 1

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_quietly

    def carry_out(self, path, query, body):
        parts = path.split("/", 2)
        if parts[1] != BUCKET:
            raise Refused(404, "NoSuchBucket")
        key = parts[2] if len(parts) > 2 else ""
        with self.store.lock:
            if not key:
                if "uploads" in query:
                    return self.list_uploads(query)
                return self.list_objects(query)
            if "uploads" in query:
                return self.begin_upload(key)
            if "uploadId" in query:
                return self.continue_upload(key, query, body)
            if "retention" in query and self.command == "PUT":
                return self.extend_lock(key, body)
            if "versionId" in query and self.command == "DELETE":
                return self.delete_version(key, query["versionId"])
            return getattr(self, "object_" + self.command.lower())(key, body)

    def metadata(self):
        kept = {n.lower(): v for n, v in self.headers.items()
                if n.lower().startswith("x-amz-meta-") or n.lower() == "x-amz-storage-class"}
        return kept

    def write(self, key, data, metadata):
        used = sum(len(o["data"]) for name, o in self.store.objects.items() if name != key)
        if used + len(data) > self.store.quota:
            raise Refused(403, "QuotaExceeded")
        etag = '"' + hashlib.md5(data).hexdigest() + '"'
        lock = self.wanted_lock()
        self.put_aside(key)
        self.store.last_version += 1
        self.store.objects[key] = {"data": data, "etag": etag, "time": int(self.store.now()),
                                   "metadata": metadata, "lock": lock,
                                   "version": f"v/{self.store.last_version}+="}
        return etag

    def object_put(self, key, body):
        condition = self.headers.get("If-None-Match")
        if condition not in (None, "*"):
            raise Refused(501, "NotImplemented")
        if condition and key in self.store.objects and not self.store.ignores_conditions:
            raise Refused(412, "PreconditionFailed")
        if condition and self.store.condition_gap_ms:
            self.store.lock.release()
            time.sleep(self.store.condition_gap_ms / 1000)
            self.store.lock.acquire()
        return 200, b"", {"ETag": self.write(key, body, self.metadata())}

    def find(self, key):
        if key not in self.store.objects:
            raise Refused(404, "NoSuchKey")
        return self.store.objects[key]

    def object_get(self, key, _):
        found = self.find(key)
        data, status, more = found["data"], 200, {}
        asked = self.headers.get("Range")
        if asked:
            first, last = (int(n) for n in re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups())
            if first >= len(data):
                raise Refused(416, "InvalidRange", headers={"Content-Range": f"bytes */{len(data)}"})
            last = min(last, len(data) - 1)
            more = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
            data, status = data[first:last + 1], 206
        return status, data, {"ETag": found["etag"], **self.described(found), **more}

    def described(self, found):
        more = {}
        if self.store.lock_kind == 1:
            more["x-amz-version-id"] = found["version"]
        if found["lock"]:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found["lock"][1]))
            more |= {"x-amz-object-lock-mode": found["lock"][0],
                     "x-amz-object-lock-retain-until-date": stamp}
        return {"Last-Modified": email.utils.formatdate(found["time"], usegmt=True),
                **found["metadata"], **more}

    def object_head(self, key, _):
        found = self.find(key)
        return 200, b"", {"Content-Length": str(len(found["data"])), "ETag": found["etag"],
                          **self.described(found)}

    def object_delete(self, key, _):
        if not self.store.removes:
            raise Refused(403, "AccessDenied")
        self.put_aside(key)
        self.store.objects.pop(key, None)
        return 204, b"", {}

    def list_objects(self, query):
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        limit = min(int(query.get("max-keys", "1000")), 1000)
        if query.get("list-type") != "2" or query.get("encoding-type") != "url":
            raise Refused(501, "NotImplemented")
        keys = sorted((k for k in self.store.objects if k.startswith(prefix)), key=str.encode)
        keys = [k for k in keys if k.encode() > after.encode()]
        lines = []
        for key in keys[:limit]:
            found = self.store.objects[key]
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found["time"]))
            kind = found["metadata"].get("x-amz-storage-class", "STANDARD")
            lines.append(f"<Contents><Key>{urllib.parse.quote_plus(key, safe='/-_.*')}</Key>"
                         f"<LastModified>{stamp}</LastModified><ETag>{escape(found['etag'])}</ETag>"
                         f"<Size>{len(found['data'])}</Size><StorageClass>{kind}</StorageClass></Contents>")
        text = ('<?xml version="1.0" encoding="UTF-8"?>\n'
                '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                f"<Name>{BUCKET}</Name><EncodingType>url</EncodingType>"
                f"<IsTruncated>{'true' if len(keys) > limit else 'false'}</IsTruncated>"
                f"{''.join(lines)}</ListBucketResult>")
        return 200, text.encode(), {}

    def list_uploads(self, query):
        prefix = query.get("prefix", "")
        lines = [f"<Upload><Key>{urllib.parse.quote_plus(u['key'])}</Key><UploadId>{name}</UploadId></Upload>"
                 for name, u in self.store.uploads.items() if u["key"].startswith(prefix)]
        text = ("<ListMultipartUploadsResult><EncodingType>url</EncodingType>"
                f"{''.join(lines)}</ListMultipartUploadsResult>")
        return 200, text.encode(), {}

    def begin_upload(self, key):
        self.store.last_upload += 1
        name = f"upload/{self.store.last_upload}+="
        self.store.uploads[name] = {"key": key, "metadata": self.metadata(), "parts": {}}
        text = (f"<InitiateMultipartUploadResult><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
                "</InitiateMultipartUploadResult>")
        return 200, text.encode(), {}

    def continue_upload(self, key, query, body):
        upload = self.store.uploads.get(query["uploadId"])
        if not upload or upload["key"] != key:
            raise Refused(404, "NoSuchUpload")
        if self.command == "DELETE":
            del self.store.uploads[query["uploadId"]]
            return 204, b"", {}
        if self.command == "PUT":
            source = urllib.parse.unquote(self.headers["x-amz-copy-source"]).split("/", 2)
            if source[1] != BUCKET:
                raise Refused(404, "NoSuchBucket")
            data = self.find(source[2])["data"]
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["x-amz-copy-source-range"])
            first, last = (int(n) for n in match.groups())
            if last >= len(data):
                raise Refused(416, "InvalidRange")
            part = data[first:last + 1]
            etag = '"' + hashlib.md5(part).hexdigest() + '"'
            upload["parts"][query["partNumber"]] = (etag, part)
            return 200, f"<CopyPartResult><ETag>{escape(etag)}</ETag></CopyPartResult>".encode(), {}
        space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
        data = b""
        for part in ET.fromstring(body).iter(space + "Part"):
            etag, bytes_of = upload["parts"][part.find(space + "PartNumber").text]
            if part.find(space + "ETag").text != etag:
                raise Refused(400, "InvalidPart")
            data += bytes_of
        self.write(key, data, upload["metadata"])
        etag = '"' + hashlib.md5(data).hexdigest() + '-1"'  # Of an upload in parts, no MD5.
        self.store.objects[key]["etag"] = etag
        del self.store.uploads[query["uploadId"]]
        return 200, (f"<CompleteMultipartUploadResult><ETag>{escape(etag)}</ETag>"
                     "</CompleteMultipartUploadResult>").encode(), {}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        """Says nothing about clients that break a connection off, as those of the tests do."""


def main():
    store = Handler.store = Store()
    server = Server(("127.0.0.1", 0), Handler)
    if sys.argv[1:] == ["--tls"]:
        folder = pathlib.Path(__file__).parent
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "test-certificate.pem", folder / "test-key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"port {server.server_port}", flush=True)
    for line in sys.stdin:
        print(store.obey(line), flush=True)
    store.ended.set()


if __name__ == "__main__":
    main()
