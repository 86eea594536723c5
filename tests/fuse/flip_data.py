# SPDX-License-Identifier: Apache-2.0
# Flips a byte in each 2 KiB of the containers' data in a segment, but not in their headers.
import os
import sys

size = os.path.getsize(sys.argv[1])
with open(sys.argv[1], "r+b") as file:
    for at in range(200_000, size - 200_000, 2048):
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 255]))
