#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a second backup of unchanged files by `rsync --link-dest` with the same on the disk.

Many small files are stored as a version, by rsync into the mount and into a folder of the disk
under it. Then, taking turns, `rsync -a --link-dest=../latest` makes the next version of both: with
nothing changed it reads no data and makes one link per file. The source stays in the page cache.
Shown: seconds per file, their ratio, and the requests that the daemon answered per file.
"""

import os
import random
import sys

import harness
from harness import median, spread

FILES_PER_FOLDER = 100


def make_source(folder, files):
    """Files of 200 to 3000 bytes, in folders of a hundred."""
    rng = random.Random(3)
    for number in range(files):
        if number % FILES_PER_FOLDER == 0:
            below = os.path.join(folder, f"{number // 10000:03}", f"{number:07}")
            os.makedirs(below)
        with open(os.path.join(below, f"file-{number}.txt"), "wb") as file:
            file.write(rng.randbytes(rng.randrange(200, 3000)))
    old = 1_600_000_000
    for root, _, names in os.walk(folder, topdown=False):
        for name in names + ["."]:
            os.utime(os.path.join(root, name), (old, old))


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.files = args.files
        self.disk_rounds, self.mount_rounds, self.requests, self.cpu = [], [], [], []
        self.seal_s = []

    def rsync(self, target, *options):
        return harness.run(["rsync", "-a", *options, self.work.at("source") + "/", target + "/"])

    def on_disk(self, number):
        target = self.work.at("disk", f"v{number}")
        run = self.rsync(target, f"--link-dest=../v{number - 1}")
        os.sync()
        self.disk_rounds.append(run.seconds)

    def on_mount(self, mount, number):
        version = f"v{number}.partial"
        target = self.work.at("mnt", "s", version)
        before, cpu = mount.requests(), mount.cpu_seconds()
        run = self.rsync(target, "--link-dest=../latest")
        self.mount_rounds.append(run.seconds)
        self.requests.append((mount.requests() - before) / self.files)
        self.cpu.append(mount.cpu_seconds() - cpu)
        seal = harness.run(["mv", "-T", target, self.work.at("mnt", "s", f"v{number}")])
        self.seal_s.append(seal.seconds)
        os.sync()

    def run(self):
        make_source(self.work.at("source"), self.files)
        repository = harness.Repository(self.args.varve, self.work.at("repo"), "zstd:1")
        mount = repository.mount(self.work.at("mnt"))
        os.makedirs(self.work.at("disk"))
        os.mkdir(self.work.at("mnt", "s"))
        first = self.work.at("mnt", "s", "v0")
        print(f"first copy: disk {self.rsync(self.work.at('disk', 'v0')).seconds:.1f} s, "
              f"mount {self.rsync(first + '.partial').seconds:.1f} s")
        os.rename(first + ".partial", first)
        before = repository.stats()
        os.sync()
        for number in range(1, self.args.rounds + 1):
            self.on_disk(number)
            self.on_mount(mount, number)
        after = repository.stats()
        last = self.work.at("mnt", "s", f"v{self.args.rounds}")
        harness.run(["diff", "-r", "--no-dereference", self.work.at("source"), last])
        peak = mount.peak_rss_mib()
        repository.umount(mount)
        harness.run([self.args.varve, "check", repository.path])
        self.report(before, after, peak)

    def report(self, before, after, peak):
        def each(values):
            return (f"{median(values) / self.files * 1e6:7.1f} µs a file "
                    f"({spread([v / self.files * 1e6 for v in values])})")
        print(f"disk   {each(self.disk_rounds)}")
        print(f"mount  {each(self.mount_rounds)}   daemon {each(self.cpu)} of CPU, "
              f"{median(self.requests):.2f} reads by it a file, peak {peak:.0f} MiB")
        print(f"seal   {each(self.seal_s)}")
        ratio = median(self.mount_rounds) / median(self.disk_rounds)
        whole = [m + s for m, s in zip(self.mount_rounds, self.seal_s)]
        print(f"ratio mount / disk: {ratio:.2f}; with the seal "
              f"{median(whole) / median(self.disk_rounds):.2f}")
        for key in sorted(before):
            if isinstance(before[key], (int, float)) and before[key] != after[key]:
                print(f"  {key}: {before[key]} → {after[key]}")
        if self.args.ratio_max and ratio > self.args.ratio_max:
            sys.exit(f"FAILED: the ratio is above {self.args.ratio_max}")


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--files", type=int, default=100_000)
    options.add_argument("--ratio-max", type=float, help="fail above it")
    args = harness.parse(options)
    work = harness.Work(args.dir, "link-dest")
    print(harness.machine())
    Bench(args, work).run()


if __name__ == "__main__":
    main()
