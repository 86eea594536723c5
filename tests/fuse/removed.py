#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses directories and files that have lost their names: `removed.py DIR`, or a version and a
series: `removed.py --version MOUNT`."""

import errno
import os
import stat
import sys


def refused(want, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except OSError as error:
        assert error.errno == want, f"{call.__name__}{arguments}: {error}"
        return
    raise SystemExit(f"{call.__name__}{arguments} was not refused")


def use_removed(fd, ino, xattrs=True):
    """Tries the operations that a program may do with the descriptor of a removed directory."""
    status = os.fstat(fd)
    assert stat.S_ISDIR(status.st_mode) and status.st_nlink == 0, status
    assert status.st_ino == ino, (status.st_ino, ino)
    assert os.stat(f"/proc/self/fd/{fd}").st_nlink == 0
    os.fchmod(fd, 0o710)
    os.fchown(fd, 12, 34)
    os.utime(fd, (1, 2))
    status = os.fstat(fd)
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid, status.st_mtime) == (
        0o710, 12, 34, 2), status
    assert os.listdir(fd) == []
    refused(errno.ENOENT, os.open, "new", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    refused(errno.ENOENT, os.mkdir, "new", dir_fd=fd)
    refused(errno.ENOENT, os.stat, "new", dir_fd=fd)
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_DIRECTORY)
    assert os.fstat(again).st_nlink == 0
    os.close(again)
    os.fsync(fd)
    if xattrs:
        os.setxattr(f"/proc/self/fd/{fd}", "user.k", b"v")
        assert os.getxattr(f"/proc/self/fd/{fd}", "user.k") == b"v"


def directories(top):
    for flags in os.O_RDONLY | os.O_DIRECTORY, os.O_PATH:
        for how in "rmdir", "rename":
            path = f"{top}/removed"
            os.mkdir(path)
            os.setxattr(path, "user.before", b"kept")
            ino = os.stat(path).st_ino
            fd = os.open(path, flags)
            if how == "rmdir":
                os.rmdir(path)
            else:
                os.mkdir(f"{top}/other")
                os.rename(f"{top}/other", path)
            status = os.fstat(fd)
            assert status.st_nlink == 0 and status.st_ino == ino, status
            assert os.getxattr(f"/proc/self/fd/{fd}", "user.before") == b"kept"
            if flags != os.O_PATH:
                use_removed(fd, ino)
            os.close(fd)
            if how == "rename":
                assert os.stat(path).st_nlink == 2
                os.rmdir(path)
    print("ok - a removed directory that is open can be looked at and changed")

    os.mkdir(f"{top}/here")
    os.chdir(f"{top}/here")
    os.rmdir(f"{top}/here")
    assert os.stat(".").st_nlink == 0 and os.listdir(".") == []
    refused(errno.ENOENT, os.getcwd)
    refused(errno.ENOENT, os.mkdir, "new")
    fd = os.open(".", os.O_RDONLY)
    assert os.fstat(fd).st_nlink == 0
    os.close(fd)
    os.chdir(top)
    print("ok - so can the directory that a program stands in")

    os.makedirs(f"{top}/a/b/c")
    fds = [os.open(f"{top}/a{rest}", os.O_RDONLY) for rest in ("", "/b", "/b/c")]
    for rest in "/b/c", "/b", "":
        os.rmdir(f"{top}/a{rest}")
    for fd in fds:
        assert os.fstat(fd).st_nlink == 0
        os.close(fd)


def files(top):
    for flags in os.O_RDWR, os.O_PATH:
        for how in "unlink", "rename":
            path = f"{top}/file"
            with open(path, "wb") as file:
                file.write(b"old" * 50_000)
            fd = os.open(path, flags)
            ino = os.fstat(fd).st_ino
            if how == "unlink":
                os.unlink(path)
            else:
                with open(f"{top}/other", "wb") as file:
                    file.write(b"new")
                os.rename(f"{top}/other", path)
            status = os.fstat(fd)
            assert (status.st_nlink, status.st_ino, status.st_size) == (0, ino, 150_000), status
            again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
            assert os.pread(again, 6, 149_997) == b"old"
            os.pwrite(again, b"changed", 10)
            assert os.pread(again, 10, 9) == b"ochangeddo", os.pread(again, 10, 9)
            os.close(again)
            os.close(fd)
            if how == "rename":
                assert open(path, "rb").read() == b"new"
                os.unlink(path)
    os.symlink("target", f"{top}/link")
    fd = os.open(f"{top}/link", os.O_PATH | os.O_NOFOLLOW)
    os.unlink(f"{top}/link")
    assert os.fstat(fd).st_nlink == 0 and os.readlink("", dir_fd=fd) == "target"
    os.close(fd)
    os.mkfifo(f"{top}/fifo")
    fd = os.open(f"{top}/fifo", os.O_PATH)
    os.unlink(f"{top}/fifo")
    assert stat.S_ISFIFO(os.fstat(fd).st_mode) and os.fstat(fd).st_nlink == 0
    os.close(fd)
    print("ok - so can files of all types, by a path descriptor too")


def versions(mount):
    for name in "gone", "gone/v.partial":
        path = f"{mount}/{name}"
        os.mkdir(path)
        if name != "gone":
            os.setxattr(path, "user.k", b"v")
    fds = [(os.open(path, os.O_RDONLY), os.stat(path).st_ino)
           for path in (f"{mount}/gone/v.partial", f"{mount}/gone")]
    os.chdir(f"{mount}/gone/v.partial")
    os.rmdir(f"{mount}/gone/v.partial")
    assert os.stat(".").st_nlink == 0 and os.listdir(".") == []
    refused(errno.ENOENT, os.mkdir, "new")
    os.rmdir(f"{mount}/gone")
    os.chdir("/")
    for fd, ino in fds:
        use_removed(fd, ino, xattrs=False)
        os.close(fd)
    os.mkdir(f"{mount}/gone")  # Another directory of the same name.
    os.mkdir(f"{mount}/gone/v.partial")
    assert os.stat(f"{mount}/gone/v.partial").st_nlink == 2
    os.rmdir(f"{mount}/gone/v.partial")
    os.rmdir(f"{mount}/gone")


if sys.argv[1] == "--version":
    versions(sys.argv[2])
else:
    directories(sys.argv[1])
    files(sys.argv[1])
