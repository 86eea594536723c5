#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""measured.py MIB SECONDS COMMAND...: runs the command and returns its exit code; fails (99) if it
or a child used more memory or processor time. Other work on the machine takes none of that time. A
command that waits for ever is left to the limit of the test."""
import os
import resource
import signal
import subprocess
import sys

mib_max, seconds = int(sys.argv[1]), int(sys.argv[2])
if os.environ.get("VARVE_TEST_SANITIZER"):
    mib_max, seconds = 1 << 20, seconds * 6
resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
code = subprocess.run(sys.argv[3:], stdin=subprocess.DEVNULL).returncode
if code == -signal.SIGXCPU:
    print(f"not done after {seconds} s of a processor: {' '.join(sys.argv[3:])}")
    sys.exit(99)
mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
if mib > mib_max:
    print(f"took {mib} MiB instead of {mib_max}: {' '.join(sys.argv[3:])}")
    sys.exit(99)
sys.exit(code)
