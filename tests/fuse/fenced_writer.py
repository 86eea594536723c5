# SPDX-License-Identifier: Apache-2.0
"""Keeps a file and a mapping open below a folder. At the end of stdin, tries every kind of change
and says whether all were refused with EROFS."""

import errno
import mmap
import os
import sys


def main():
    folder = sys.argv[1]
    path = lambda name: os.path.join(folder, name)
    opened = os.open(path("open"), os.O_RDWR | os.O_CREAT, 0o644)
    os.write(opened, b"before")
    with open(path("mapped"), "wb") as file:
        file.truncate(100000)
    mapped = os.open(path("mapped"), os.O_RDWR)
    mapping = mmap.mmap(mapped, 100000)
    mapping[5000:5014] = b"by the mapping"
    print("ready", flush=True)
    sys.stdin.read()

    series = os.path.dirname(folder)
    changes = {
        "write": lambda: os.write(opened, b"after"),
        "fallocate": lambda: os.posix_fallocate(opened, 0, 100),
        "ftruncate": lambda: os.ftruncate(opened, 2),
        "copy_file_range": lambda: os.copy_file_range(mapped, opened, 100, 0, 0),
        "create": lambda: os.open(path("new"), os.O_WRONLY | os.O_CREAT, 0o644),
        "open": lambda: os.open(path("data"), os.O_WRONLY),
        "open O_TRUNC": lambda: os.open(path("data"), os.O_RDONLY | os.O_TRUNC),
        "mkdir": lambda: os.mkdir(path("new")),
        "mknod": lambda: os.mkfifo(path("new")),
        "symlink": lambda: os.symlink("target", path("new")),
        "link": lambda: os.link(path("data"), path("new")),
        "rename": lambda: os.rename(path("data"), path("new")),
        "unlink": lambda: os.unlink(path("data")),
        "rmdir": lambda: os.rmdir(path("dir")),
        "chmod": lambda: os.chmod(path("data"), 0o600),
        "utime": lambda: os.utime(path("data"), (1, 1)),
        "setxattr": lambda: os.setxattr(path("data"), "user.a", b"b"),
        "removexattr": lambda: os.removexattr(path("data"), "user.a"),
        "seal": lambda: os.rename(folder, os.path.join(series, "two")),
        "version": lambda: os.mkdir(os.path.join(series, "three.partial")),
        "series": lambda: os.mkdir(os.path.join(os.path.dirname(series), "new")),
    }
    wrong = []
    for name, change in changes.items():
        try:
            change()
            wrong.append(name + " succeeded")
        except OSError as error:
            if error.errno != errno.EROFS:
                wrong.append(f"{name}: {error}")
    mapping.flush()  # The kernel took these bytes before the fence.
    print(", ".join(wrong) or "refused", flush=True)


main()
