#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a bucket in a real store.

usage: make_bucket.py ENDPOINT REGION NAME [lock]   The environment has S3_KEY and S3_SECRET.
"""

import datetime
import hashlib
import hmac
import os
import sys
import urllib.parse
import urllib.request


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def main():
    endpoint, region, name = sys.argv[1:4]
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    empty = hashlib.sha256(b"").hexdigest()
    headers = {"host": urllib.parse.urlsplit(endpoint).netloc, "x-amz-content-sha256": empty, "x-amz-date": now}
    if sys.argv[4:] == ["lock"]:
        headers["x-amz-bucket-object-lock-enabled"] = "true"
    names = ";".join(sorted(headers))
    lines = "".join(f"{header}:{headers[header]}\n" for header in sorted(headers))
    canonical = "\n".join(["PUT", f"/{name}", "", lines, names, empty])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    key = b"AWS4" + os.environ["S3_SECRET"].encode()
    for part in (now[:8], region, "s3", "aws4_request"):
        key = sign(key, part)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signature = sign(key, f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}").hex()
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={os.environ['S3_KEY']}/{scope},"
                                f"SignedHeaders={names},Signature={signature}")
    request = urllib.request.Request(f"{endpoint}/{name}", method="PUT", headers=headers)
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        sys.exit(f"no bucket {name}: {error.code} {error.read().decode(errors='replace')}")


if __name__ == "__main__":
    main()
