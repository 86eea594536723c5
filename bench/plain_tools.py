#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares programs that visit many small files on the disk, on null-fs and on a mount.

Each round runs each program on all of them, taking turns: copies into a new tree, a second backup
by `rsync --link-dest`, then listings and copies of a tree. null-fs answers each request at once
from memory, also those for extended attributes, so its time is the least that the kernel and the
program need with the same requests. Shown for each: microseconds per file, the processor time of
the program and of the daemon, and the daemon's reads of /dev/fuse per file, about one per request.
Programs marked "cold" start with empty caches.
"""

import os
import random
import sys

import harness
from harness import median

FILES_PER_FOLDER = 100
OLD = 1_600_000_000


def make_source(folder, files):
    """Files of 200 to 3000 bytes, in folders of a hundred."""
    rng = random.Random(3)
    for number in range(files):
        below = os.path.join(folder, f"{number // FILES_PER_FOLDER:05}")
        if number % FILES_PER_FOLDER == 0:
            os.makedirs(below)
        with open(os.path.join(below, f"file-{number}.txt"), "wb") as file:
            file.write(rng.randbytes(rng.randrange(200, 3000)))
    for root, _, names in os.walk(folder, topdown=False):
        for name in names + ["."]:
            os.utime(os.path.join(root, name), (OLD, OLD))


def processor_s(mount):
    """Returns the processor time of the daemon's threads, more exact than in ticks."""
    total = 0
    for task in os.listdir(f"/proc/{mount.process.pid}/task"):
        path = f"/proc/{mount.process.pid}/task/{task}/schedstat"
        with open(path, encoding="ascii") as text:
            total += int(text.read().split()[0])
    return total / 1e9


class Place:
    """A folder of the disk, or a mount, that holds versions."""

    def __init__(self, name, root, mount=None):
        self.name, self.root, self.mount = name, root, mount
        self.rows = {}

    def version(self, name):
        return os.path.join(self.root, name)

    def measure(self, row, command, cold=False):
        if cold:
            harness.drop_caches()
        before = (self.mount.requests(), processor_s(self.mount)) if self.mount else (0, 0)
        run = harness.run(command)
        after = (self.mount.requests(), processor_s(self.mount)) if self.mount else (0, 0)
        self.rows.setdefault(row, []).append(
            (run.seconds, run.cpu, after[1] - before[1], after[0] - before[0]))

    def backup(self, row, command, name):
        """Runs `command` into a new version, which then gets its final name."""
        os.mkdir(self.version(name + ".partial"))
        self.measure(row, [*command, self.version(name + ".partial")])
        os.rename(self.version(name + ".partial"), self.version(name))


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.source = work.at("source") + "/"

    def places(self):
        work, args = self.work, self.args
        os.makedirs(work.at("disk"))
        yield Place("disk", work.at("disk"))
        null = harness.Mount([args.null_fs, "--xattrs", work.at("null")], work.at("null"),
                             work.at("null.log"))
        yield Place("null-fs", work.at("null"), null)
        repository = harness.Repository(args.varve, work.at("repo"), "zstd:1")
        mount = repository.mount(work.at("mnt"))
        os.mkdir(work.at("mnt", "s"))
        yield Place("varve", work.at("mnt", "s"), mount)

    def write(self, place, number):
        place.backup("cp -a into", ["cp", "-a", self.source + "."], f"c{number}")
        place.backup("rsync -a into", ["rsync", "-a", "-W", self.source], f"r{number}")
        place.backup("rsync --link-dest",
                     ["rsync", "-a", f"--link-dest=../r{number}", self.source], f"l{number}")

    def read(self, place, number):
        version = place.version(f"l{number}")
        for name, command in (("ls -lR", ["ls", "-lR", version]),
                              ("find -ls", ["find", version, "-ls"]),
                              ("du -s", ["du", "-s", version])):
            place.measure(name + ", cold", command, cold=True)
            place.measure(name, command)
        target = self.work.target()
        place.measure("cp -a out, cold", ["cp", "-a", version, target], cold=True)
        if number == 0 and place.name != "null-fs":
            harness.run(["diff", "-r", self.source, target])

    def run(self):
        make_source(self.work.at("source"), self.args.files)
        places = list(self.places())
        for number in range(self.args.rounds):
            harness.warm(self.source)
            for work in (self.write, self.read):
                for place in places:
                    work(place, number)
        self.report(places)
        for place in places:
            if place.mount:
                place.mount.unmount()

    def report(self, places):
        micro = 1e6 / self.args.files
        print(f"{'':20}{'':9}{'µs a file':>10}{'program':>9}{'daemon':>8}{'requests':>10}"
              f"{'of disk':>9}{'of null-fs':>12}")
        for row in places[0].rows:
            base = median([sample[0] for sample in places[0].rows[row]])
            null = median([sample[0] for sample in places[1].rows[row]])
            for place in places:
                seconds, cpu, daemon, requests = (
                    median([sample[i] for sample in place.rows[row]]) for i in range(4))
                print(f"{row if place is places[0] else '':20}{place.name:9}"
                      f"{seconds * micro:>10.1f}{cpu * micro:>9.1f}{daemon * micro:>8.1f}"
                      f"{requests / self.args.files:>10.2f}{seconds / base:>9.2f}"
                      f"{seconds / null:>12.2f}")


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0], rounds=7)
    options.add_argument("--null-fs", help="default: BUILD/bench/null-fs")
    options.add_argument("--files", type=int, default=3000)
    args = harness.parse(options)
    args.null_fs = args.null_fs or os.path.join(args.build, "bench/null-fs")
    print(f"{harness.machine()}; {args.rounds} rounds of {args.files} files")
    Bench(args, harness.Work(args.dir, "tools")).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
