#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the n-th state of a tree that changes from version to version.

usage: retention_tree.py DIR N   DIR holds state N - 1, or is missing for N = 1.

The same N always gives the same bytes and times.
"""

import os
import random
import sys

KIB = 1024
EPOCH = 1_700_000_000


def write(path, data, n):
    with open(path, "wb") as out:
        out.write(data)
    os.utime(path, (EPOCH + n, EPOCH + n))


def main():
    root, n = sys.argv[1], int(sys.argv[2])
    source = random.Random(n)
    at = lambda *parts: os.path.join(root, *parts)
    if n == 1:
        os.makedirs(at("static"))
        for i in range(5):
            write(at("static", f"f{i}"), source.randbytes(200 * KIB), 1)
        os.link(at("static", "f0"), at("static", "linked"))
        os.symlink("static/f1", at("symlink"))
        write(at("big"), source.randbytes(3000 * KIB), 1)
    write(at("changing"), source.randbytes(300 * KIB), n)
    if n % 3 == 1:
        write(at("third"), source.randbytes(400 * KIB), n)
    with open(at("big"), "r+b") as big:
        big.seek(n * 100 * KIB)
        big.write(source.randbytes(60 * KIB))
    os.utime(at("big"), (EPOCH + n, EPOCH + n))
    write(at(f"new_{n:02}"), source.randbytes(150 * KIB), n)
    if n > 3:
        os.unlink(at(f"new_{n - 3:02}"))
    os.chmod(at("static", "f2"), 0o600 if n % 2 else 0o640)
    for folder in ("static", ""):
        os.utime(at(folder), (EPOCH + n, EPOCH + n))


if __name__ == "__main__":
    main()
