#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares cold reads of versions, at random and in small pieces, with the same on the disk.

An image gets some versions, each with a few percent of it overwritten; random reads go to the raw
file and, through a read-only mount, to the newest and the oldest version. For a tree of many small
files, it times find(1), `cp -a`, `varve restore`, and the way from the mounting to the first byte
of a file. Each timing starts with empty caches and a fresh daemon. Needs root for
/proc/sys/vm/drop_caches.
"""

import os
import random
import shutil
import sys
import time

import harness
from harness import MIB, median, spread

BLOCK = 64 << 10


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def random_reads(path, reads, rng):
    """Returns the seconds of each read of 64 KiB, at random multiples of 4 KiB."""
    seconds = []
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    pages = (os.fstat(file).st_size - BLOCK) >> 12
    for _ in range(reads):
        offset = rng.randrange(pages) << 12
        start = time.monotonic()
        if len(os.pread(file, BLOCK, offset)) != BLOCK:
            sys.exit(f"{path}: a short read")
        seconds.append(time.monotonic() - start)
    os.close(file)
    return seconds


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.repository = harness.Repository(args.varve, work.at("repo"), args.compression)
        self.peaks = []

    def content(self, rng, size):
        """Returns random bytes, which do not compress, or digits, which shrink to half."""
        if not self.args.compressible:
            return rng.randbytes(size)
        return rng.randbytes(size // 2).hex().encode()

    def make_image(self):
        rng = random.Random(11)
        with open(self.work.at("image"), "wb") as file:
            for _ in range(self.args.image_bytes // MIB):
                file.write(self.content(rng, MIB))

    def change_image(self, number):
        """Overwrites 2 % of the image, in runs of 64 KiB."""
        rng = random.Random(number)
        size = self.args.image_bytes
        with open(self.work.at("image"), "r+b") as file:
            for _ in range(max(1, size // 50 // BLOCK)):
                file.seek(rng.randrange(size // BLOCK) * BLOCK)
                file.write(self.content(rng, BLOCK))

    def folder(self, number):
        """Returns the path of a file below the tree."""
        first = number - number % self.args.folder_files
        return os.path.join(f"{number // 10000:03}", f"{first:07}")

    def make_tree(self):
        rng = random.Random(3)
        for number in range(self.args.files):
            below = self.work.at("tree", self.folder(number))
            os.makedirs(below, exist_ok=True)
            with open(os.path.join(below, f"file-{number}"), "wb") as file:
                file.write(rng.randbytes(rng.randrange(200, 20000)))

    def prepare_tree(self):
        self.make_tree()
        harness.run([self.args.varve, "-q", "store", self.repository.path, "tree/v",
                     self.work.at("tree")])

    def prepare_image(self):
        args, at = self.args, self.work.at
        self.make_image()
        os.mkdir(at("images"))
        os.rename(at("image"), at("images/image"))
        os.symlink(at("images/image"), at("image"))
        for number in range(args.versions):
            if number > 0:
                self.change_image(number)
            harness.run([args.varve, "-q", "store", self.repository.path, f"image/v{number:02}",
                         at("images")])
        harness.run([args.varve, "-q", "arrange", self.repository.path])

    def mount(self):
        return self.repository.mount(self.work.at("mnt"), "-o", self.args.mount_options)

    def umount(self, mount):
        self.peaks.append(mount.peak_rss_mib())
        self.repository.umount(mount)

    def image_round(self, number):
        newest = f"v{self.args.versions - 1:02}"
        results = {}
        for name, path in (("raw", self.work.at("images/image")),
                           ("newest", self.work.at(f"mnt/image/{newest}/image")),
                           ("oldest", self.work.at("mnt/image/v00/image"))):
            harness.drop_caches()
            mount = None if name == "raw" else self.mount()
            results[name] = random_reads(path, self.args.reads, random.Random(number))
            if mount:
                self.umount(mount)
        return results

    def first_byte(self, number):
        """Measures from the mounting on, without the time in which the system starts the daemon."""
        file = random.Random(number).randrange(self.args.files)
        path = self.work.at("mnt/tree/v", self.folder(file), f"file-{file}")
        harness.drop_caches()
        mount = self.mount()
        start = time.monotonic()
        with open(path, "rb", buffering=0) as opened:
            opened.read(1)
        seconds = time.monotonic() - start
        self.umount(mount)
        return seconds

    def cold(self, command, mounted):
        harness.drop_caches()
        mount = self.mount() if mounted else None
        seconds = harness.run(command).seconds
        if mount:
            self.umount(mount)
        return seconds

    def tree_round(self, number):
        at = self.work.at
        seconds = {"first byte": self.first_byte(number),
                   "find": self.cold(["find", at("tree"), "-size", "+1G"], False),
                   "find, mount": self.cold(["find", at("mnt/tree/v"), "-size", "+1G"], True)}
        if "copies" not in self.args.parts:
            return seconds
        copies = {"cp -a": (["cp", "-a", at("tree")], False),
                  "cp -a, mount": (["cp", "-a", at("mnt/tree/v")], True),
                  "restore": ([self.args.varve, "-q", "restore", self.repository.path, "tree/v"],
                              False)}
        for name, (command, mounted) in copies.items():
            out = self.work.target()
            seconds[name] = self.cold([*command, out], mounted)
            if number == 0:
                harness.run(["diff", "-r", at("tree"), out])
        return seconds

    def image_restores(self):
        """Compares a plain copy of the raw image with copies and restores of two versions."""
        at = self.work.at
        newest = f"v{self.args.versions - 1:02}"
        commands = {"cp": (["cp", "-a", at("images")], False)}
        for name, version in (("newest", newest), ("oldest", "v00")):
            commands[f"cp -a, {name}"] = (["cp", "-a", at("mnt/image", version)], True)
            commands[f"restore, {name}"] = ([self.args.varve, "-q", "restore",
                                             self.repository.path, f"image/{version}"], False)
        seconds = {}
        for name, (command, mounted) in commands.items():
            out = self.work.target()
            seconds[name] = self.cold([*command, out], mounted)
            shutil.rmtree(out)
        return seconds


def report_reads(rounds):
    print(f"\n{'':<8}{'reads/s':>9}{'p50':>9}{'p99':>9}{'of raw':>8}")
    usual = median([len(r["raw"]) / sum(r["raw"]) for r in rounds])
    for name in ("raw", "newest", "oldest"):
        rates = [len(r[name]) / sum(r[name]) for r in rounds]
        every = [second for r in rounds for second in r[name]]
        print(f"{name:<8}{median(rates):>9.0f}{quantile(every, 0.5) * 1e3:>6.2f} ms"
              f"{quantile(every, 0.99) * 1e3:>6.2f} ms{median(rates) / usual:>8.0%}")


def report_seconds(rounds, names, base):
    usual = median([r[base] for r in rounds])
    for name in names:
        seconds = [r[name] for r in rounds]
        print(f"{name:<16}{median(seconds):>8.2f} s {spread(seconds, '{:.2f}'):>12}"
              f"{usual / median(seconds):>8.0%}")


def measure_image(bench, args):
    bench.prepare_image()
    print(f"\n{args.reads} random reads of 64 KiB in {args.image_bytes / MIB:.0f} MiB, cold")
    report_reads([bench.image_round(number) for number in range(args.rounds)])
    print(f"\nthe image as a whole, of {args.versions} versions, cold")
    copies = [bench.image_restores() for _ in range(args.rounds)]
    report_seconds(copies, tuple(copies[0]), "cp")


def measure_tree(bench, args):
    bench.prepare_tree()
    trees = [bench.tree_round(number) for number in range(args.rounds)]
    print(f"\n{args.files} small files, cold")
    first = [r["first byte"] for r in trees]
    print(f"first byte      {median(first) * 1e3:>8.1f} ms")
    report_seconds(trees, ("find", "find, mount"), "find")
    if "copies" in args.parts:
        report_seconds(trees, ("cp -a", "cp -a, mount", "restore"), "cp -a")
        ratio = median([r["restore"] / r["cp -a, mount"] for r in trees])
        print(f"`cp -a` out of the mount has {ratio:.0%} of the speed of `varve restore`")


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--image-bytes", type=harness.parse_bytes, default=1 << 30)
    options.add_argument("--versions", type=int, default=20, help="of the image")
    options.add_argument("--reads", type=int, default=1000)
    options.add_argument("--files", type=int, default=100_000)
    options.add_argument("--folder-files", type=int, default=100, help="in each directory")
    options.add_argument("--compression", default="none", help="as `varve init` takes it")
    options.add_argument("--compressible", action="store_true", help="the image shrinks to half")
    options.add_argument("--mount-options", default="ro")
    options.add_argument("--parts", nargs="*", default=["image", "tree", "copies"],
                         choices=["image", "tree", "copies"])
    args = harness.parse(options)
    bench = Bench(args, harness.Work(args.dir, "read"))
    print(f"{harness.machine()}; {args.rounds} rounds, compression {args.compression}, "
          f"mounted with {args.mount_options}")
    if "image" in args.parts:
        measure_image(bench, args)
    if "tree" in args.parts or "copies" in args.parts:
        measure_tree(bench, args)
    print(f"daemon's peak RSS {max(bench.peaks):.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
