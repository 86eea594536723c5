#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: rewrite.py DIR     Writes to open files in ways that are easy to get wrong.

DIR is inside an open version (or on a plain file system, where it must also pass).
"""

import mmap
import os
import random
import sys

DIR = sys.argv[1]
RANDOM = random.Random(3)


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok - {what}")


def path(name):
    return os.path.join(DIR, name)


def content(name):
    with open(path(name), "rb") as file:
        return file.read()


def mapping_sees_direct_writes():
    first = RANDOM.randbytes(200_000)
    with open(path("mapped"), "wb") as file:
        file.write(first)
    fd = os.open(path("mapped"), os.O_RDWR)
    writer = os.open(path("mapped"), os.O_WRONLY)
    with mmap.mmap(fd, len(first)) as mapped:
        check(mapped[:] == first, "a shared mapping shows what was written")
        os.pwrite(writer, b"by write", 5000)
        check(mapped[5000:5008] == b"by write", "a mapping sees a write of a write-only open")
        mapped[100_000:100_009] = b"by memory"
        mapped.flush()
        check(content("mapped")[100_000:100_009] == b"by memory", "a read sees the mapping")
        os.pwrite(writer, b"both", 100_020)
        check(content("mapped")[100_000:100_024] == b"by memory" + first[100_009:100_020] + b"both",
              "writes by mapping and by write-only open stand side by side")
        mapped[0:3] = b"end"
    os.close(writer)
    os.close(fd)
    expected = bytearray(first)
    for offset, data in ((5000, b"by write"), (100_000, b"by memory"), (100_020, b"both"),
                         (0, b"end")):
        expected[offset:offset + len(data)] = data
    check(content("mapped") == bytes(expected), "after closing everything is there")


def cached_reader_sees_direct_writes():
    with open(path("cached"), "wb") as file:
        file.write(b"a" * 50_000)
    reader = os.open(path("cached"), os.O_RDONLY)
    os.pread(reader, 50_000, 0)
    writer = os.open(path("cached"), os.O_WRONLY)
    os.pwrite(writer, b"b" * 10, 20_000)
    os.pwrite(writer, b"c" * 10, 50_000)
    data = os.pread(reader, 60_000, 0)
    check(data == b"a" * 20_000 + b"b" * 10 + b"a" * 29_990 + b"c" * 10,
          "a reader with a warm cache sees an overwrite and an append")
    os.close(writer)
    os.close(reader)


def unlinked_file_lives_on():
    fd = os.open(path("unlinked"), os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, b"before")
    os.unlink(path("unlinked"))
    os.write(fd, b" and after")
    check(os.pread(fd, 100, 0) == b"before and after", "an unlinked open file is read and written")
    check(os.fstat(fd).st_nlink == 0, "its link count is zero")
    with open(path("unlinked"), "wb") as file:
        file.write(b"another")
    check(os.pread(fd, 100, 0) == b"before and after", "a new file of its name is another file")
    os.close(fd)
    check(content("unlinked") == b"another", "closing the old one leaves the new one")


def rename_over_open_file():
    for name in ("old", "new"):
        with open(path(name), "wb") as file:
            file.write(name.encode() * 1000)
    fd = os.open(path("old"), os.O_RDONLY)
    os.rename(path("new"), path("old"))
    check(os.pread(fd, 3, 0) == b"old", "a file that was renamed over is still read")
    os.close(fd)
    check(content("old") == b"new" * 1000, "the name shows the new content")


def times_after_writes():
    fd = os.open(path("times"), os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"x" * 100_000)
    os.utime(fd, ns=(11, 1_000_000_000_123_456_789))
    os.fchmod(fd, 0o4750)
    os.close(fd)
    check(os.stat(path("times")).st_mtime_ns == 1_000_000_000_123_456_789,
          "a time set before the close is kept by the close")
    with open(path("times"), "ab") as file:
        file.write(b"more")
    check(os.stat(path("times")).st_mtime_ns > 1_700_000_000_000_000_000, "a write sets the time")
    check(os.stat(path("times")).st_size == 100_004, "an append adds to the size")


def backwards_and_sparse():
    size, step = 1_000_000, 50_000
    data = RANDOM.randbytes(size)
    fd = os.open(path("backwards"), os.O_WRONLY | os.O_CREAT)
    for offset in range(size - step, -1, -step):
        os.pwrite(fd, data[offset:offset + step], offset)
    os.close(fd)
    check(content("backwards") == data, "a file written from its end to its start")
    fd = os.open(path("sparse"), os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 10 << 20)
    os.pwrite(fd, b"island", 5 << 20)
    check(os.pread(fd, 10, (5 << 20) - 2) == b"\0\0island\0\0", "an island in a hole")
    check(os.lseek(fd, 0, os.SEEK_DATA) > 4 << 20, "SEEK_DATA finds the island")
    check(os.lseek(fd, 5 << 20, os.SEEK_HOLE) < 6 << 20, "SEEK_HOLE finds the hole behind it")
    os.close(fd)
    os.truncate(path("backwards"), 123_457)
    os.truncate(path("backwards"), 500_000)
    check(content("backwards") == data[:123_457] + bytes(500_000 - 123_457),
          "truncating down and up leaves zeros")


def many_open_files():
    count, rounds = 200, 5
    descriptors = [os.open(path(f"many-{n}"), os.O_WRONLY | os.O_CREAT) for n in range(count)]
    for turn in range(rounds):
        for number, fd in enumerate(descriptors):
            os.write(fd, b"%d:%d " % (number, turn) * 3000)
    for fd in descriptors:
        os.close(fd)
    good = all(content(f"many-{n}") == b"".join(b"%d:%d " % (n, t) * 3000 for t in range(rounds))
               for n in range(count))
    check(good, f"{count} files written in turns")


def main():
    os.mkdir(DIR)
    mapping_sees_direct_writes()
    cached_reader_sees_direct_writes()
    unlinked_file_lives_on()
    rename_over_open_file()
    times_after_writes()
    backwards_and_sparse()
    many_open_files()


if __name__ == "__main__":
    main()
