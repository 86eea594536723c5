#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how often a command and other processes open entries of directories while the command runs.

count_opens.py DIR… -- COMMAND…: runs the command without output and prints the number.
"""

import ctypes
import os
import subprocess
import sys

IN_OPEN = 0x20
EVENT_BYTES = 16

split = sys.argv.index("--")
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(os.O_NONBLOCK)
for directory in sys.argv[1:split]:
    if libc.inotify_add_watch(watch, os.fsencode(directory), IN_OPEN) < 0:
        sys.exit(f"{directory}: {os.strerror(ctypes.get_errno())}")
subprocess.run(sys.argv[split + 1:], check=True, stdout=subprocess.DEVNULL)
count = 0
try:
    while events := os.read(watch, 1 << 20):
        at = 0
        while at < len(events):
            at += EVENT_BYTES + int.from_bytes(events[at + 12:at + 16], sys.byteorder)
            count += 1
except BlockingIOError:
    pass
print(count)
