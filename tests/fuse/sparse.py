#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files with holes.

usage: sparse.py make DIR            files for rsync -S, without a whole block of zeros
       sparse.py blocks A B          B has the bytes of A, and no holes
       sparse.py holes DIR LOCAL     makes the same holes in both, and compares them
       sparse.py same DIR LOCAL      compares bytes and holes
       sparse.py bytes A B           compares bytes
"""

import ctypes
import os
import random
import sys

from data_ranges import data_ranges

BLOCK = 4096
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
libc = ctypes.CDLL(None, use_errno=True)


def noise(rng, size):
    """Returns bytes without a zero."""
    return bytes(rng.choices(range(1, 256), k=size))


def make(directory):
    rng = random.Random(3)
    whole = bytearray(noise(rng, 300_000))
    for name, places in {
        "a byte here and there": range(1000, 300_000, 1500),
        "many bytes": rng.sample(range(300_000), 3000),
        "first and last": [0, 299_999],
    }.items():
        data = bytearray(whole)
        for at in places:
            data[at] = 0
        open(f"{directory}/{name}", "wb").write(data)
    data = bytearray(whole)  # 4096 zeros, but not aligned to a block.
    for at in range(2048, 290_000, 3 * BLOCK):
        data[at:at + BLOCK] = bytes(BLOCK)
    open(f"{directory}/zeros across blocks", "wb").write(data)
    data = bytearray(whole)  # Almost a block of zeros.
    for at in range(BLOCK, 290_000, 2 * BLOCK):
        data[at + 1:at + BLOCK] = bytes(BLOCK - 1)
    open(f"{directory}/nearly blocks", "wb").write(data)


def data_map(fd):
    return list(data_ranges(fd))


def contents(fd, ranges):
    return [os.pread(fd, end - start, start) for start, end in ranges]


def compare(a, b, holes, bytes_too=True):
    names = sorted(os.listdir(a))
    assert names == sorted(os.listdir(b)), (names, os.listdir(b))
    for name in names:
        first, second = (os.open(f"{each}/{name}", os.O_RDONLY) for each in (a, b))
        assert os.fstat(first).st_size == os.fstat(second).st_size, name
        maps = data_map(first), data_map(second)
        if holes:
            assert maps[0] == maps[1], f"{name}: {maps[0][:8]} is not {maps[1][:8]}"
        if bytes_too:
            for ranges in maps:
                assert contents(first, ranges) == contents(second, ranges), name
        os.close(first)
        os.close(second)


def without_holes(a, b):
    compare(a, b, holes=False)
    for name in os.listdir(b):
        fd = os.open(f"{b}/{name}", os.O_RDONLY)
        status = os.fstat(fd)
        assert data_map(fd) == [(0, status.st_size)], (name, data_map(fd)[:5])
        os.close(fd)


def fallocate(fd, mode, offset, size):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(size)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def make_holes(directory):
    rng = random.Random(11)

    def file(name, flags=os.O_RDWR):
        return os.open(f"{directory}/{name}", flags | os.O_CREAT, 0o644)

    for flags, kind in (os.O_RDWR, "mixed"), (os.O_WRONLY, "streamed"):
        fd = file(f"{kind}: all hole", flags)
        os.ftruncate(fd, 1_000_001)
        fd = file(f"{kind}: a byte at the end", flags)
        os.pwrite(fd, b"x", 70_000)
        fd = file(f"{kind}: a byte in each block", flags)
        for at in range(100, 400_000, BLOCK):
            os.pwrite(fd, b"x", at)
        fd = file(f"{kind}: a byte in each second block", flags)
        for at in range(BLOCK + 100, 400_000, 2 * BLOCK):
            os.pwrite(fd, b"x", at)
        fd = file(f"{kind}: grown, then appended to", flags)
        for size in 100, 5000, 8192, 20_000, 20_001, 40_960, 61_000:
            os.ftruncate(fd, size)
            os.pwrite(fd, b"tail", size)
        fd = file(f"{kind}: grown twice, then appended to", flags)
        os.ftruncate(fd, 10_000)
        os.ftruncate(fd, 30_000)
        os.pwrite(fd, b"tail", 30_000)
        fd = file(f"{kind}: cut in a hole", flags)
        os.pwrite(fd, noise(rng, 9000), 50_000)
        os.ftruncate(fd, 30_001)
        os.pwrite(fd, b"tail", 30_002)
        fd = file(f"{kind}: over eight GiB", flags)
        os.pwrite(fd, noise(rng, 5000), 1234)
        os.pwrite(fd, noise(rng, 700), (9 << 30) + 777)
        os.ftruncate(fd, (10 << 30) + 1)
    fd = file("punched")
    os.pwrite(fd, noise(rng, 200_000), 0)
    for at, size in (100, 50), (5000, 3000), (20_000, 20_000), (81_920, 4096), (190_000, 9_999):
        fallocate(fd, KEEP_SIZE | PUNCH_HOLE, at, size)
    fd = file("in any order")
    for at in rng.sample(range(0, 2_000_000, 1000), 120):
        os.pwrite(fd, noise(rng, 1 + rng.randrange(700)), at)


def main():
    command, a, *rest = sys.argv[1:]
    if command == "make":
        make(a)
    elif command == "blocks":
        without_holes(a, rest[0])
    elif command == "holes":
        for directory in (a, rest[0]):
            os.makedirs(directory, exist_ok=True)
            make_holes(directory)
        compare(a, rest[0], holes=True)
    else:
        compare(a, rest[0], holes=command == "same")


main()
