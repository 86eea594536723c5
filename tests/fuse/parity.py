#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: parity.py containers FOLDER | flip FILE OFFSET | zero FILE OFFSET BYTES

`containers` prints a line for each container below FOLDER, the longest first: bytes, offset, file.
"""

import os
import struct
import sys


def containers(path):
    """Returns (offset, bytes) for each container; see docs/FORMAT.md §3 and §14.2."""
    size, at = os.path.getsize(path), 0
    with open(path, "rb") as file:
        while at < size:
            file.seek(at)
            header = file.read(128)
            flags, = struct.unpack_from("<I", header, 8)
            if flags & 2:  # Sealed.
                length, = struct.unpack_from("<I", header, 20)
            else:
                head, data = struct.unpack_from("<2I", header, 32)
                length = head + (data if flags & 1 else -(-data // 4096) * 4096)
            yield at, length
            at += length


def main(what, path, *numbers):
    if what == "containers":
        found = [(length, at, os.path.join(folder, name))
                 for folder, _, names in os.walk(path) for name in names
                 if name.endswith((".seg", ".vol"))
                 for at, length in containers(os.path.join(folder, name))]
        for length, at, name in sorted(found, key=lambda one: (-one[0], one[2], one[1])):
            print(length, at, name)
        return
    at = int(numbers[0])
    with open(path, "r+b") as file:
        file.seek(at)
        if what == "flip":
            old = file.read(1)
            file.seek(at)
            file.write(bytes([old[0] ^ 0x20]))
        else:
            file.write(bytes(int(numbers[1])))


main(*sys.argv[1:])
