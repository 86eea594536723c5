#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restores hard links with paths that are too long for a system call by rescue/varve-read.py. VARVE is the path of
the program.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

READER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "rescue", "varve-read.py")


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def run(*words):
    done = subprocess.run(words, capture_output=True, check=False)
    check(done.returncode == 0 and b"varve-read:" not in done.stderr, "%s: %s" % (words, done.stderr.decode()))


def in_deep_folder(top, action):
    """Calls action in a folder whose path has more than 4,096 bytes. Makes missing folders."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(top)
        for _ in range(20):
            os.makedirs("d" * 255, exist_ok=True)
            os.chdir("d" * 255)
        return action()
    finally:
        os.fchdir(here)
        os.close(here)


def make_tree():
    os.mkdir("tree")
    for name in "a", "z":  # The first names of their files are before and in the deep folder.
        with open("tree/" + name, "w", encoding="utf-8") as file:
            file.write(name)
    top = os.open("tree", os.O_RDONLY)

    def make_links():
        os.link("a", "of-a", src_dir_fd=top)
        os.link("z", "of-z", src_dir_fd=top)
        os.link("of-z", "of-z-too")

    in_deep_folder("tree", make_links)
    os.close(top)


def main():
    program = os.path.abspath(os.environ["VARVE"])
    work = tempfile.mkdtemp(prefix="varve-long.", dir=os.environ.get("VARVE_TEST_TMP", "/var/tmp"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.chdir(work)
    make_tree()
    run(program, "init", "repo")
    run(program, "-q", "store", "repo", "s/v", "tree")
    run(sys.executable, READER, "repo", "restore", "s/v", "restored")
    inodes = in_deep_folder("restored", lambda: {name: os.stat(name).st_ino for name in os.listdir(".")})
    a, z = os.stat("restored/a"), os.stat("restored/z")
    check(inodes == {"of-a": a.st_ino, "of-z": z.st_ino, "of-z-too": z.st_ino} and (a.st_nlink, z.st_nlink) == (2, 3),
          "hard links with long paths are not kept")
    print("ok - hard links with paths beyond 4,096 bytes are kept")


if __name__ == "__main__":
    main()
