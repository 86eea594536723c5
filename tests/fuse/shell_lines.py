#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types lines into an interactive shell on a terminal of its own, and prints what the shell shows.

usage: shell_lines.py SHELL [ARGUMENT...] < LINES   \\t in a line is the key Tab.
"""

import os
import pty
import select
import sys
import time

LIMIT_S = 60
PROMPT = "ready> "


def read_until(terminal, is_over):
    """Returns what the shell shows until `is_over` says so, or until nothing comes for too long."""
    shown, deadline = "", time.monotonic() + LIMIT_S
    while not is_over(shown) and time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            shown += os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            break
    return shown


def main():
    lines = sys.stdin.read().replace("\\t", "\t").splitlines()
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="dumb", PS1=PROMPT)
        os.execvp(sys.argv[1], sys.argv[1:])
    shown = read_until(terminal, lambda text: PROMPT in text)
    # Each line waits for the prompt: the terminal itself would take keys like Delete before.
    for number, line in enumerate(lines):
        # The quotes keep the echo of the command from looking like its output.
        end = f"end-of-{number}"
        os.write(terminal, line.encode() + f"\necho 'end-''of-{number}'\n".encode())
        shown += read_until(terminal, lambda text: PROMPT in text[text.find(end):] and end in text)
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(process, 0)
    sys.stdout.write(shown.replace("\r", ""))
    sys.exit(not lines or f"end-of-{len(lines) - 1}" not in shown)


if __name__ == "__main__":
    main()
