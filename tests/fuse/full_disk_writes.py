#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files in several ways until the disk is full, and checks the accepted data afterwards.

usage: full_disk_writes.py fill FOLDER STATE     writes until ENOSPC, then reads all of it back
       full_disk_writes.py check FOLDER STATE    what was reported as durable is there

A block must read as written if its write succeeded. After a failed close(2) or fsync(2), it may be
an older block of the same place, or the read may fail. After a kill, it may also be the hole that the
place was when the file was synced last. It must never be anything else.
"""

import errno
import json
import os
import random
import sys

BLOCK_BYTES = 4096
FILE_BLOCKS = 1024


def block(seed, place, round_number):
    return random.Random(f"{seed}-{place}-{round_number}").randbytes(BLOCK_BYTES)


class Writer:
    """One file, written block by block. Knows which rounds each block may hold."""

    def __init__(self, folder, name, kind, seed):
        self.path, self.kind, self.seed = os.path.join(folder, name), kind, seed
        self.rng = random.Random(seed)
        self.name, self.taken, self.durable, self.failed = name, {}, {}, False
        flags = {"sequential": os.O_WRONLY, "random": os.O_WRONLY, "cached": os.O_RDWR,
                 "read-too": os.O_RDWR}[kind]
        self.fd = os.open(self.path, flags | os.O_CREAT)
        self.round = 0

    def places(self):
        places = list(range(FILE_BLOCKS))
        if self.kind != "sequential":
            self.rng.shuffle(places)
        return places

    def write_round(self):
        """Writes once. Returns False when the disk is full."""
        self.round += 1
        for count, place in enumerate(self.places()):
            try:
                done = os.pwrite(self.fd, block(self.seed, place, self.round), place * BLOCK_BYTES)
            except OSError as error:
                self.expect_full(error)
                # By its interface, a failed write has stored nothing.
                return False
            if done != BLOCK_BYTES:
                sys.exit(f"FAILED: {self.path}: a write of {done} bytes")
            self.taken[place] = self.round
            if self.kind == "read-too" and count % 50 == 0:
                self.compare(place)
            if count % 300 == 299 and not self.sync():
                return False
        return self.sync()

    def expect_full(self, error):
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            sys.exit(f"FAILED: {self.path}: {error}")

    def sync(self):
        try:
            os.fsync(self.fd)
        except OSError as error:
            self.expect_full(error)
            self.failed = True
            return False
        self.durable = dict(self.taken)
        return True

    def compare(self, place):
        got = os.pread(self.fd, BLOCK_BYTES, place * BLOCK_BYTES)
        if got != block(self.seed, place, self.taken[place]):
            sys.exit(f"FAILED: {self.path}: block {place} differs while it is written")

    def close(self):
        try:
            os.close(self.fd)
        except OSError as error:
            self.expect_full(error)
            self.failed = True


def verify(path, seed, taken, durable, failed, killed=False):
    """Returns the number of compared blocks and the number of unreadable ones."""
    fd, refused = os.open(path, os.O_RDONLY), 0
    for place, round_number in sorted(taken.items()):
        oldest = durable.get(place, 0)
        try:
            got = os.pread(fd, BLOCK_BYTES, place * BLOCK_BYTES)
        except OSError as error:
            if failed and error.errno in (errno.EIO, errno.ENOSPC) and oldest != round_number:
                refused += 1
                continue
            sys.exit(f"FAILED: {path}: block {place} of round {round_number} (on disk: {oldest}): "
                     f"{error}; an error was {'' if failed else 'not '}reported")
        rounds = range(max(oldest, 1), round_number + 1) if failed else [round_number]
        if any(got == block(seed, place, n) for n in rounds):
            continue
        was_hole = oldest == 0 and place < max(durable, default=0)
        if killed and was_hole and got == bytes(BLOCK_BYTES):
            continue
        # A file that was shorter before a failure may still be shorter.
        if failed and oldest == 0 and got == b"" and place * BLOCK_BYTES >= os.fstat(fd).st_size:
            continue
        what = "zeros" if got == bytes(len(got)) else "something else"
        sys.exit(f"FAILED: {path}: block {place} of round {round_number} (on disk: {oldest}) reads "
                 f"as {what}, {len(got)} bytes; an error was {'' if failed else 'not '}reported")
    os.close(fd)
    return len(taken) - refused, refused


def fill(folder, state_path):
    writers, compared, refused, full = [], 0, 0, 0
    kinds = ("sequential", "random", "cached", "read-too")
    while full < 6:
        number = len(writers)
        try:
            writer = Writer(folder, f"file-{number}", kinds[number % 4], number + 1)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            break
        writers.append(writer)
        if not (writer.write_round() and writer.write_round()):
            full += 1
        if full == 0 or number % 2:
            writer.close()
            writer.fd = -1
    for writer in writers:
        if writer.fd >= 0:
            writer.close()
    for writer in writers:
        done = verify(writer.path, writer.seed, writer.taken, writer.durable, writer.failed)
        compared, refused = compared + done[0], refused + done[1]
    with open(state_path, "w", encoding="ascii") as file:
        json.dump([[w.name, w.seed, w.taken, w.durable] for w in writers], file)
    failed = sum(w.failed for w in writers)
    print(f"ok - {len(writers)} files, {failed} with an error from fsync or close; {compared} blocks "
          f"read as they were written, {refused} refused")


def check(folder, state_path):
    with open(state_path, encoding="ascii") as file:
        files = json.load(file)
    compared = 0
    for name, seed, taken, durable in files:
        path = os.path.join(folder, name)
        if not durable and not os.path.exists(path):
            continue
        taken, durable = ({int(k): v for k, v in t.items()} for t in (taken, durable))
        compared += verify(path, seed, taken, durable, failed=True, killed=True)[0]
    print(f"ok - {compared} blocks read as they were written")


if __name__ == "__main__":
    {"fill": fill, "check": check}[sys.argv[1]](*sys.argv[2:])
