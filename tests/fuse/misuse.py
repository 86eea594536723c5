#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: misuse.py MNT Tries forbidden operations. Leaves a sealed version s/one."""

import errno
import os
import sys

MNT = sys.argv[1]
TOP = os.path.join(MNT, "s")
failures = 0


def refused(expected, what, call, *arguments, **named):
    """Checks that the call fails with one of the errnos."""
    global failures
    expected = expected if isinstance(expected, tuple) else (expected,)
    try:
        call(*arguments, **named)
        outcome = "succeeded"
    except OSError as error:
        if error.errno in expected:
            print(f"ok - {what}: {errno.errorcode[error.errno]}")
            return
        outcome = errno.errorcode.get(error.errno, error.errno)
    failures += 1
    wanted = " or ".join(errno.errorcode[code] for code in expected)
    print(f"FAILED: {what}: {outcome}, not {wanted}")


def holds(condition, what):
    global failures
    failures += not condition
    print(f"{'ok -' if condition else 'FAILED:'} {what}")


def write(path, text="content"):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_sealed(name):
    top = f"{TOP}/{name}"
    os.mkdir(f"{top}.partial")
    os.mkdir(f"{top}.partial/dir")
    write(f"{top}.partial/dir/file")
    os.symlink("file", f"{top}.partial/dir/symlink")
    os.rename(f"{top}.partial", top)
    return top


def sealed_is_immutable(one):
    file, folder = f"{one}/dir/file", f"{one}/dir"
    os.mkdir(f"{TOP}/open.partial")
    write(f"{TOP}/open.partial/file")
    changes = {
        "open for writing": (os.open, file, os.O_WRONLY),
        "open for reading and writing": (os.open, file, os.O_RDWR),
        "truncate": (os.truncate, file, 0),
        "create": (os.open, f"{folder}/new", os.O_CREAT | os.O_WRONLY),
        "mkdir": (os.mkdir, f"{folder}/new"),
        "mkdir at the top": (os.mkdir, f"{one}/new"),
        "mknod": (os.mkfifo, f"{folder}/new"),
        "symlink": (os.symlink, "x", f"{folder}/new"),
        "unlink": (os.unlink, file),
        "rmdir": (os.rmdir, folder),
        "rmdir of the version": (os.rmdir, one),
        "rename": (os.rename, file, f"{folder}/other"),
        "chmod": (os.chmod, file, 0o600),
        "chmod of the version": (os.chmod, one, 0o700),
        "chown": (os.chown, file, 1, 1),
        "utimens": (os.utime, file),
        "setxattr": (os.setxattr, file, "user.x", b"1"),
        "link inside": (os.link, file, f"{folder}/linked"),
    }
    for what, (call, *arguments) in changes.items():
        refused(errno.EROFS, f"{what} in a sealed version", call, *arguments)
    # The kernel may give either reason here. A link must never appear.
    refused((errno.EROFS, errno.EXDEV), "link into a sealed version from an open one",
            os.link, f"{TOP}/open.partial/file", f"{folder}/linked")
    with open(file, encoding="utf-8") as reader:
        holds(reader.read() == "content", "the sealed file is as it was")
    os.unlink(f"{TOP}/open.partial/file")
    os.rmdir(f"{TOP}/open.partial")


def names_are_taken(one):
    refused(errno.EEXIST, "mkdir of a sealed version's name", os.mkdir, one)
    refused(errno.EEXIST, "mkdir of a series' name", os.mkdir, TOP)
    refused(errno.EEXIST, "mkdir of `latest`", os.mkdir, f"{TOP}/latest")
    os.mkdir(f"{TOP}/one.partial")
    refused((errno.EEXIST, errno.ENOTEMPTY), "seal onto an existing name", os.rename,
            f"{TOP}/one.partial", one)
    refused(errno.EEXIST, "mkdir of an open version's name", os.mkdir, f"{TOP}/one.partial")
    os.rmdir(f"{TOP}/one.partial")


def one_open_version():
    os.mkdir(f"{TOP}/a.partial")
    refused(errno.EBUSY, "a second version beside a partial", os.mkdir, f"{TOP}/b")
    refused(errno.EBUSY, "a second partial", os.mkdir, f"{TOP}/b.partial")
    descriptor = os.open(f"{TOP}/a.partial/file", os.O_CREAT | os.O_WRONLY)
    refused(errno.EBUSY, "seal while a file is open for writing", os.rename,
            f"{TOP}/a.partial", f"{TOP}/a")
    os.close(descriptor)
    os.rename(f"{TOP}/a.partial", f"{TOP}/a")
    os.mkdir(f"{TOP}/naive")
    descriptor = os.open(f"{TOP}/naive/file", os.O_CREAT | os.O_WRONLY)
    refused(errno.EBUSY, "a second version while the naive one is written", os.mkdir, f"{TOP}/n2")
    os.close(descriptor)
    os.mkdir(f"{TOP}/n2")
    state = os.getxattr(f"{TOP}/naive", "user.varve.state")
    holds(state == b"sealed", "opening the next version seals the naive one")
    holds(os.getxattr(f"{TOP}/n2", "user.varve.state") == b"open", "the next version is open")
    os.rmdir(f"{TOP}/n2")


def moves_between_versions(one):
    refused(errno.EPERM, "rename of a sealed version to .partial", os.rename, one,
            f"{TOP}/x.partial")
    os.mkdir(f"{MNT}/t")
    refused(errno.EPERM, "move of a version to another series", os.rename, one, f"{MNT}/t/one")
    refused(errno.EPERM, "file directly in the root", os.open, f"{MNT}/file",
            os.O_CREAT | os.O_WRONLY)
    refused(errno.EPERM, "file directly in a series", os.open, f"{TOP}/file",
            os.O_CREAT | os.O_WRONLY)
    refused(errno.EPERM, "symlink in a series", os.symlink, "one", f"{TOP}/link")
    refused(errno.EPERM, "fifo in the root", os.mkfifo, f"{MNT}/fifo")
    os.mkdir(f"{TOP}/p.partial")
    os.mkdir(f"{MNT}/t/p.partial")
    write(f"{TOP}/p.partial/file")
    refused(errno.EXDEV, "rename of a file between two versions", os.rename,
            f"{TOP}/p.partial/file", f"{MNT}/t/p.partial/file")
    os.mkdir(f"{TOP}/p.partial/dir")
    refused(errno.EXDEV, "rename of a directory between two versions", os.rename,
            f"{TOP}/p.partial/dir", f"{MNT}/t/p.partial/dir")
    refused((errno.EPERM, errno.EXDEV), "a directory of a version becomes a version", os.rename,
            f"{TOP}/p.partial/dir", f"{TOP}/new")
    refused(errno.ENOTEMPTY, "rmdir of an open version with files", os.rmdir, f"{TOP}/p.partial")
    refused(errno.ENOTEMPTY, "rmdir of a series with versions", os.rmdir, TOP)
    os.unlink(f"{TOP}/p.partial/file")
    os.rmdir(f"{TOP}/p.partial/dir")
    os.rmdir(f"{TOP}/p.partial")
    os.rmdir(f"{MNT}/t/p.partial")
    os.rmdir(f"{MNT}/t")
    holds(not os.path.exists(f"{MNT}/t"), "an empty version and an empty series can be removed")


def names_and_labels(one):
    os.rename(one, f"{TOP}/uno")
    with open(f"{TOP}/uno/dir/file", encoding="utf-8") as file:
        holds(file.read() == "content", "a sealed version can be relabelled")
    os.rename(f"{TOP}/uno", one)
    refused(errno.ENAMETOOLONG, "a name of 256 bytes for a version", os.mkdir, f"{TOP}/{'v' * 256}")
    os.mkdir(f"{TOP}/names.partial")
    refused(errno.ENAMETOOLONG, "a name of 256 bytes for a file", os.mkdir,
            f"{TOP}/names.partial/{'v' * 256}")
    refused(errno.ENOENT, "open of what is not there", os.open, f"{TOP}/names.partial/x",
            os.O_RDONLY)
    os.rmdir(f"{TOP}/names.partial")
    for name in (b"v\xff\xfe", b"new\nline", b" ", b"v" * 255):
        path = os.fsencode(TOP) + b"/" + name
        os.mkdir(path)
        holds(name in os.listdir(os.fsencode(TOP)), f"a version may be called {name[:9]!r}")
        os.rmdir(path)


def main():
    os.mkdir(TOP)
    one = make_sealed("one")
    sealed_is_immutable(one)
    names_are_taken(one)
    one_open_version()
    moves_between_versions(one)
    names_and_labels(one)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
