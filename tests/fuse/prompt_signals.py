#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends signals to a command that asks for a passphrase on a terminal.

usage: prompt_signals.py SECRET COMMAND... REPO    Fails unless the terminal echoes after each signal that ends or
stops the command, and unless the command takes the secret after it was stopped and continued.
"""

import os
import pty
import select
import signal
import sys
import termios
import time

ENDINGS = ["HUP", "INT", "QUIT", "TERM", "ALRM", "PIPE", "ABRT", "USR2"]
LIMIT_S = 60


def fail(text):
    sys.exit("FAILED: " + text)


def echoes(end):
    return bool(termios.tcgetattr(end)[3] & termios.ECHO)


def read_prompt(terminal):
    shown, limit = b"", time.monotonic() + LIMIT_S
    while not shown.endswith(sys.argv[-1].encode() + b": "):
        if not select.select([terminal], [], [], max(limit - time.monotonic(), 0))[0]:
            fail(f"no prompt after {shown!r}")
        shown += os.read(terminal, 1)
    return shown


def start(command, end):
    """Starts the command as the foreground job of a session that this process leads."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(end, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for name in ("PIPE", "XFSZ"):  # Python ignores them.
            signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
        os.dup2(end, 0)
        os.dup2(end, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execvp(command[0], command)
    return child


def wait_for(child, how=0):
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        found, status = os.waitpid(child, os.WNOHANG | how)
        if found:
            return status
        time.sleep(0.01)
    fail("the command neither ends nor stops")


def hidden_prompt(terminal, end):
    read_prompt(terminal)
    if echoes(end):
        fail("the prompt shows what is typed")


def main():
    secret, command = sys.argv[1], sys.argv[2:]
    if os.fork():  # The child leads a session of its own.
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    os.setsid()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    terminal, end = pty.openpty()
    import fcntl
    fcntl.ioctl(end, termios.TIOCSCTTY, 0)
    for name in ENDINGS + ["typed QUIT"]:
        child = start(command, end)
        hidden_prompt(terminal, end)
        if name == "typed QUIT":
            os.write(terminal, b"\x1c")
        else:
            os.kill(child, getattr(signal, "SIG" + name))
        status = wait_for(child)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            fail(f"{name}: the command ended well")
        if not echoes(end):
            fail(f"{name}: the terminal does not echo any more")
    for how in ("typed", "sent"):
        child = start(command, end)
        hidden_prompt(terminal, end)
        os.write(terminal, b"half a wor")
        time.sleep(0.1)
        if how == "typed":
            os.write(terminal, b"\x1a")
        else:
            os.kill(child, signal.SIGTSTP)
        status = wait_for(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            fail(f"Ctrl-Z {how}: the command is not stopped: {status}")
        if not echoes(end):
            fail(f"Ctrl-Z {how}: the terminal does not echo while the command is stopped")
        os.tcsetpgrp(end, child)
        os.killpg(child, signal.SIGCONT)
        hidden_prompt(terminal, end)
        os.write(terminal, secret.encode() + b"\n")
        status = wait_for(child)
        if status != 0 or not echoes(end):
            fail(f"Ctrl-Z {how}: the secret is not taken after fg: {status}")
    os._exit(0)


if __name__ == "__main__":
    main()
