# SPDX-License-Identifier: Apache-2.0
# Flips a byte in each 2 KiB of the containers' data in segments, but not in their headers.
import os
import sys

for path in sys.argv[1:]:
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for at in range(200_000, size - 200_000, 2048):
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 255]))
