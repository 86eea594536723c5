#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a terminal, and types a line at each prompt for a passphrase.

usage: typed.py [--piped TEXT] STATUS LINE... -- COMMAND...   `^C` types Ctrl-C. With --piped, the text comes
through standard input, and the terminal is the controlling one. Fails unless the command ends with the
status after all lines, shows none of them, and leaves the echo of the terminal on.
"""

import fcntl
import os
import pty
import re
import subprocess
import sys
import termios


# A prompt drops what was typed before. So a line must not be typed at a message that ends like a prompt.
PROMPT = re.compile(rb"(?:Passphrase of [^\r\n]*|New passphrase|The same passphrase again): $")


def read_to_prompt(terminal):
    shown = b""
    while not PROMPT.search(shown):
        try:
            piece = os.read(terminal, 1)
        except OSError:
            piece = b""
        if not piece:
            sys.exit(f"FAILED: no prompt after {shown!r}")
        shown += piece
    return shown


def main():
    words = sys.argv[1:]
    piped = words[1] if words[0] == "--piped" else None
    words = words[2:] if piped is not None else words
    split = words.index("--")
    status, lines, command = int(words[0]), words[1:split], words[split + 1:]
    terminal, end = pty.openpty()
    if piped is None:
        run = subprocess.Popen(command, stdin=end, stderr=end, stdout=subprocess.DEVNULL)
    else:
        run = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=end, stdout=subprocess.DEVNULL,
                               start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0))
        run.stdin.write(piped.encode())
        run.stdin.close()
    shown = b""
    for line in lines:
        shown += read_to_prompt(terminal)
        os.write(terminal, b"\x03" if line == "^C" else line.encode() + b"\n")
    got = run.wait(timeout=60)
    echoes = termios.tcgetattr(end)[3] & termios.ECHO
    os.set_blocking(terminal, False)
    try:
        shown += os.read(terminal, 65536)
    except BlockingIOError:
        pass
    text = shown.decode(errors="replace")
    print(text, file=sys.stderr)
    if got != status:
        sys.exit(f"FAILED: status {got}, not {status}")
    if not echoes:
        sys.exit("FAILED: the terminal does not echo any more")
    for line in lines:
        if line and line in text:
            sys.exit("FAILED: the terminal shows what was typed")


if __name__ == "__main__":
    main()
