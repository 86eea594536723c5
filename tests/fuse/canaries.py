#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts that must not be on the disk: makes trees of them, works with a mount, and searches files.

usage: canaries.py tree DIR SEED
       canaries.py work MNT TREE SEED REPO   Works until the daemon is gone.
       canaries.py search PID FOLDER...      PID: a daemon with open files, or 0. Exits with 1 if
                                             it finds a part of 8 bytes, and prints the places.

Each canary has 24 letters of an alphabet of eight. Encrypted or compressed bytes have a run of
eight such letters by chance once in 10^12 bytes.
"""

import os
import random
import re
import subprocess
import sys

LETTERS = b"QXZJKVWY"
PART = re.compile(rb"[QXZJKVWY]{8,}")
VARVE = os.environ.get("VARVE", "varve")


class Canaries:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def one(self):
        return bytes(self.rng.choice(LETTERS) for _ in range(24))

    def word(self):
        return self.one().decode()

    def text(self, size):
        """Compressible: lines that repeat, each with a canary."""
        lines = [b"a line with %s in it\n" % self.one() for _ in range(8)]
        out = b"".join(self.rng.choice(lines) for _ in range(size // 40 + 1))
        return out[:size]

    def noise(self, size):
        """Does not compress: a canary between each 100 random bytes."""
        out = b"".join(self.rng.randbytes(100) + self.one() for _ in range(size // 124 + 1))
        return out[:size]


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def out_of_order(path, data, step=7000):
    """Writes the pieces of a file from its end to its begin, and one in the middle again."""
    with open(path, "wb") as file:
        for at in reversed(range(0, len(data), step)):
            file.seek(at)
            file.write(data[at:at + step])
            file.flush()
        file.seek(len(data) // 2)
        file.write(data[:100])


def make_tree(folder, seed):
    canaries = Canaries(seed)
    os.makedirs(folder, exist_ok=True)
    for number in range(4):
        below = os.path.join(folder, canaries.word())
        os.mkdir(below)
        write(os.path.join(below, "small-" + canaries.word()), canaries.one() * 2)
        write(os.path.join(below, "text-" + canaries.word()), canaries.text(60_000))
        noise = os.path.join(below, "noise-" + canaries.word())
        write(noise, canaries.noise(90_000))
        os.link(noise, os.path.join(below, "link-" + canaries.word()))
        os.symlink("to/" + canaries.word(), os.path.join(below, "symlink-" + canaries.word()))
        os.setxattr(noise, "user." + canaries.word(), canaries.one())
        os.setxattr(below, "user." + canaries.word(), canaries.noise(900))
        with open(os.path.join(below, "sparse-" + canaries.word()), "wb") as file:
            for place in range(3):
                file.seek(place * 1_000_000)
                file.write(canaries.text(3000))
        for small in range(20):
            write(os.path.join(below, f"{small}-{canaries.word()}"), canaries.one())
        if number == 0:
            write(os.path.join(below, "large-" + canaries.word()), canaries.noise(3_000_000))


def varve(*arguments):
    subprocess.run([VARVE, "-q", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False, stdin=subprocess.DEVNULL)


def change(folder, canaries):
    """Writes some files of an open version again, at random places."""
    files = [os.path.join(below, name) for below, _, names in os.walk(folder) for name in names]
    for path in canaries.rng.sample(files, min(len(files), 8)):
        if os.path.islink(path):
            continue
        with open(path, "r+b") as file:
            size = os.path.getsize(path)
            for _ in range(5):
                file.seek(canaries.rng.randrange(size + 1))
                file.write(canaries.noise(canaries.rng.randrange(1, 5000)))
            if canaries.rng.random() < 0.5:
                os.fsync(file.fileno())
        os.setxattr(path, "user." + canaries.word(), canaries.one())
    for path in canaries.rng.sample(files, min(len(files), 3)):
        os.rename(path, os.path.join(folder, "renamed-" + canaries.word()))


def work(mnt, tree, seed, repo):
    canaries = Canaries(seed)
    series = os.path.join(mnt, "series-" + canaries.word())
    os.mkdir(series)
    write(os.path.join(series, "label-" + canaries.word()), canaries.text(700))
    beside = os.path.join(series, "beside-" + canaries.word())
    os.mkdir(beside)
    os.symlink(canaries.word(), os.path.join(beside, canaries.word()))
    sealed = []
    while True:
        name = "version-" + canaries.word()
        open_version = os.path.join(series, name + ".partial")
        if sealed and canaries.rng.random() < 0.4:
            varve("clone", repo, f"{os.path.basename(series)}/latest",
                  f"{os.path.basename(series)}/{name}.partial")
        elif canaries.rng.random() < 0.5:
            subprocess.run(["cp", "-a", tree, open_version], stderr=subprocess.DEVNULL, check=False)
        else:
            os.mkdir(open_version)
            subprocess.run(["rsync", "-aX", tree + "/", open_version + "/"],
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        os.listdir(open_version)
        out_of_order(os.path.join(open_version, "staged-" + canaries.word()),
                     canaries.noise(120_000))
        out_of_order(os.path.join(open_version, "staged-" + canaries.word()), canaries.text(70_000))
        change(open_version, canaries)
        os.rename(open_version, os.path.join(series, name))
        sealed.append(name)
        action = canaries.rng.randrange(4)
        if action == 0 and len(sealed) > 2:
            gone = sealed.pop(canaries.rng.randrange(len(sealed) - 1))
            varve("rm", repo, f"{os.path.basename(series)}/{gone}")
        elif action == 1:
            varve("arrange", repo)
        elif action == 2:
            renamed = "other-" + canaries.word()
            os.rename(os.path.join(series, sealed[-1]), os.path.join(series, renamed))
            sealed[-1] = renamed


def files_of(pid, folders):
    for folder in folders:
        if os.path.isfile(folder):
            yield folder
        for below, names, files in os.walk(folder):
            for name in files + names:
                path = os.path.join(below, name)
                if PART.search(os.fsencode(name)):
                    yield path, "the name"
            for name in files:
                path = os.path.join(below, name)
                if not os.path.islink(path) and os.path.isfile(path):
                    yield path
    if pid:
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            descriptors = []  # It ended by itself just before.
        for fd in descriptors:
            path = f"/proc/{pid}/fd/{fd}"
            try:
                target = os.readlink(path)
            except OSError:
                continue
            if target.endswith(" (deleted)") and os.path.isfile(path):
                yield path


def search(pid, folders):
    found = searched = 0
    for path in files_of(pid, folders):
        if isinstance(path, tuple):
            print(f"{path[0]}: a canary in {path[1]}")
            found += 1
            continue
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            print(f"{path} cannot be searched: {error}")
            found += 1
            continue
        searched += len(data)
        hits = list(PART.finditer(data))
        if hits:
            print(f"{path}: {len(hits)} parts, {hits[0][0][:24]!r} at {hits[0].start()}")
            found += 1
    print(f"searched {searched} bytes, found canaries in {found} files")
    return 1 if found else 0


def main():
    what, *rest = sys.argv[1:]
    if what == "tree":
        make_tree(rest[0], rest[1])
    elif what == "work":
        try:
            work(*rest)
        except OSError:
            pass  # The daemon is gone.
    else:
        sys.exit(search(int(rest[0]), rest[1:]))


if __name__ == "__main__":
    main()
