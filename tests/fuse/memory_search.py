#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a text is in the memory of a process.

usage: memory_search.py PID TEXT   Root only.
"""

import sys


def regions(pid):
    """(begin, end) of each region that can be read."""
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            addresses, rights, *_ = line.split()
            if rights.startswith("r") and "[v" not in line:
                begin, end = (int(part, 16) for part in addresses.split("-"))
                yield begin, end


def main():
    pid, text = int(sys.argv[1]), sys.argv[2].encode()
    searched = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end in regions(pid):
            for at in range(begin, end, 1 << 20):
                memory.seek(at)
                try:
                    piece = memory.read(min(1 << 20, end - at) + len(text))
                except OSError:
                    continue
                searched += len(piece)
                if text in piece:
                    sys.exit(f"FAILED: the text is in memory at {at:#x}")
    if searched < 1 << 20:
        sys.exit(f"FAILED: only {searched} bytes of memory could be read")


if __name__ == "__main__":
    main()
