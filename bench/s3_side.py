# SPDX-License-Identifier: Apache-2.0
"""The store's side of the benchmarks with an object store: a proxy that counts and delays, signed
requests of our own, and plain reads by curl to compare with."""

import atexit
import datetime
import hashlib
import hmac
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
EMPTY = hashlib.sha256(b"").hexdigest()


class Proxy:
    """tests/s3/proxy.py before an endpoint."""

    def __init__(self, endpoint):
        target = urllib.parse.urlsplit(endpoint).netloc
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "../tests/s3/proxy.py"), target],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        atexit.register(self.end)

    def command(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def delay(self, milliseconds):
        self.command(f"set delay_ms {milliseconds}")

    def rate(self, mib_per_second):
        self.command(f"set rate_mib {mib_per_second}")

    def endpoint(self, port=None):
        return f"http://127.0.0.1:{port or self.port}"

    def counts(self, port=None):
        """Returns {kind and folder: [requests, bytes sent, bytes received]} since the last call."""
        port = port or self.port
        found = json.loads(self.command(f"counts {port}"))
        self.command(f"reset {port}")
        return found

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()


def total(counts, *kinds):
    """Returns requests, bytes sent and bytes received of kinds ("get"), or of all."""
    rows = [row for name, row in counts.items() if not kinds or name.split()[0] in kinds]
    return tuple(sum(row[i] for row in rows) for i in range(3))


def text_of(counts):
    return ", ".join(f"{name} {row[0]}" for name, row in sorted(counts.items()))


class Store:
    """Requests of our own to a bucket, without a client library."""

    def __init__(self, endpoint, bucket):
        self.endpoint, self.bucket = endpoint, bucket
        self.key, self.secret = (os.environ["AWS_ACCESS_KEY_ID"],
                                 os.environ["AWS_SECRET_ACCESS_KEY"])
        self.region = os.environ.get("AWS_REGION", "us-east-1")

    def request(self, method, path, query=()):
        host = urllib.parse.urlsplit(self.endpoint).netloc
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        words = "&".join(f"{urllib.parse.quote(name, safe='-_.~')}="
                         f"{urllib.parse.quote(value, safe='-_.~')}"
                         for name, value in sorted(query))
        headers = {"host": host, "x-amz-content-sha256": EMPTY, "x-amz-date": stamp}
        canonical = "\n".join([method, urllib.parse.quote(path, safe="/-_.~"), words,
                               *(f"{name}:{value}" for name, value in headers.items()), "",
                               ";".join(headers), EMPTY])
        scope = f"{day}/{self.region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + self.secret).encode()
        for part in (day, self.region, "s3", "aws4_request", to_sign):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}, "
                                    f"SignedHeaders={';'.join(list(headers))}, "
                                    f"Signature={key.hex()}")
        connection = http.client.HTTPConnection(host, timeout=120)
        connection.request(method, path + ("?" + words if words else ""), headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status // 100 != 2:
            raise RuntimeError(f"{method} {path}: {answer.status} {body[:200]!r}")
        return body

    def objects(self, prefix):
        """Returns {name: bytes} of the objects below a prefix."""
        found, after = {}, ""
        while True:
            query = [("list-type", "2"), ("prefix", prefix)]
            if after:
                query.append(("start-after", after))
            page = self.request("GET", "/" + self.bucket, query).decode()
            for entry in re.findall(r"<Contents>(.*?)</Contents>", page, re.S):
                after = re.search(r"<Key>(.*?)</Key>", entry).group(1)
                found[after] = int(re.search(r"<Size>(\d+)</Size>", entry).group(1))
            if "<IsTruncated>true" not in page:
                return found

    def remove(self, prefix):
        for name in self.objects(prefix):
            self.request("DELETE", f"/{self.bucket}/{name}")

    def plain_reads(self, endpoint, objects, piece, in_flight):
        """Reads whole objects by ranges of `piece` bytes with curl, and drops the bytes. Returns
        the seconds and the bytes."""
        done = 0
        with tempfile.NamedTemporaryFile("w", suffix=".curl") as config:
            for name, size in objects.items():
                for at in range(0, size, piece):
                    last = min(at + piece, size) - 1
                    config.write(("next\n" if done else "") + f"url = \"{endpoint}/{self.bucket}/{name}\"\n"
                                 f"range = \"{at}-{last}\"\noutput = \"/dev/null\"\n"
                                 f"user = \"{self.key}:{self.secret}\"\n"
                                 f"aws-sigv4 = \"aws:amz:{self.region}:s3\"\n"
                                 f"header = \"x-amz-content-sha256: {EMPTY}\"\nfail\n")
                    done += last + 1 - at
            config.flush()
            start = time.monotonic()
            subprocess.run(["curl", "-s", "--parallel", "--parallel-immediate", "--parallel-max",
                            str(in_flight), "-K", config.name], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return time.monotonic() - start, done
