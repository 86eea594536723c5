#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""measured.py MIB SECONDS COMMAND...: runs the command and returns its exit code; fails (99) if it
or a child used more memory or time."""
import os
import resource
import subprocess
import sys

mib_max, seconds = int(sys.argv[1]), int(sys.argv[2])
if os.environ.get("VARVE_TEST_SANITIZER"):
    mib_max, seconds = 1 << 20, seconds * 6
try:
    code = subprocess.run(sys.argv[3:], timeout=seconds, stdin=subprocess.DEVNULL).returncode
except subprocess.TimeoutExpired:
    print(f"not done after {seconds} s: {' '.join(sys.argv[3:])}")
    sys.exit(99)
mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
if mib > mib_max:
    print(f"took {mib} MiB instead of {mib_max}: {' '.join(sys.argv[3:])}")
    sys.exit(99)
sys.exit(code)
