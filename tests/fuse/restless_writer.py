#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes, syncs, seals and deletes in a mounted series until something stops it.

usage: restless_writer.py run SERIES-FOLDER LOG SEED ROUNDS
       restless_writer.py verify SERIES-FOLDER LOG

`run` records in LOG what Varve has promised. It ends with 0 when all rounds are done, or with 3
when a call failed (for example, because the file system has died). `verify` ends with 1 if a
promise is broken.
"""

import os
import random
import subprocess
import sys

from promises import Promises, digest, tree_of

OPEN = "next.partial"


def write(path, data, offset=0):
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        file.seek(offset)
        file.write(data)
    return path


def sync(path):
    fd = os.open(path, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def one_round(series, promises, rng, number):
    top = os.path.join(series, OPEN)
    if not os.path.isdir(top):
        os.mkdir(top)
    names = [f"file{rng.randrange(12)}" for _ in range(rng.randrange(2, 6))]
    for name in names:
        path = os.path.join(top, name)
        promises.leave_file(name)
        if os.path.exists(path) and rng.random() < 0.5:
            size = os.path.getsize(path)
            write(path, rng.randbytes(rng.randrange(1, 9000)), rng.randrange(size + 1))
        else:
            write(path, rng.randbytes(rng.choice([10, 5000, 70_000, 900_000])))
        if rng.random() < 0.6:
            sync(path)
            promises.keep_file(name, digest(path))
    if rng.random() < 0.6:
        name = f"v{number:06}"
        for path in list(promises.files):
            promises.leave_file(path)
        promises.intend_version(name, tree_of(top))
        os.rename(top, os.path.join(series, name))
        promises.keep_version(name)
        if rng.random() < 0.5:
            subprocess.run(["cp", "-a", os.path.join(series, name), top], check=True,
                           stderr=subprocess.DEVNULL)
    kept = [name for name, version in promises.versions.items() if version["state"] == "kept"]
    if len(kept) > 4:
        name = rng.choice(kept)
        promises.leave_version(name)
        subprocess.run([os.environ["VARVE"], "rm", os.path.join(series, name)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        promises.lose_version(name)


def main():
    command, series, log = sys.argv[1:4]
    promises = Promises(log)
    if command == "verify":
        wrong = promises.broken(series, OPEN)
        for sentence in wrong:
            print(sentence)
        return 1 if wrong else 0
    seed, rounds = int(sys.argv[4]), int(sys.argv[5])
    rng = random.Random(seed)
    try:
        for number in range(rounds):
            one_round(series, promises, rng, seed * 1000 + number)
    except (OSError, subprocess.CalledProcessError) as failure:
        print(failure)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
