#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures overwriting a hundredth of a cloned image: the newly stored bytes, and the time.

The image is stored in a sealed version. Each case gets a separate version and clones the image
into it from the last one: by link(2) if available, otherwise by copy_file_range(2). Then it
overwrites a part, in one piece or in many, closes the file and seals the version.
"""

import os
import random
import sys
import time

import harness
from harness import MIB


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.bytes = args.image_bytes
        self.repository = harness.Repository(args.varve, work.at("repo"), args.compression)
        self.mount = self.repository.mount(work.at("mnt"))
        self.number = 0
        self.worst = 0.0

    def at(self, version, *names):
        return self.work.at("mnt", "s", version, *names)

    def stored(self):
        """Returns the bytes of the repository's data, which take space on the disk permanently."""
        os.sync()
        return sum(os.lstat(os.path.join(root, name)).st_size
                   for root, _, names in os.walk(os.path.join(self.repository.path, "series"))
                   for name in names if name.endswith(".seg"))

    def first(self):
        rng = random.Random(1)
        os.mkdir(self.work.at("mnt", "s"))
        os.mkdir(self.at("v0.partial"))
        self.image = self.work.at("image")
        with open(self.image, "wb") as file:
            for _ in range(0, self.bytes, MIB):
                file.write(rng.randbytes(MIB))
        start = time.monotonic()
        harness.run(["cp", self.image, self.at("v0.partial", "image")])
        os.rename(self.at("v0.partial"), self.at("v0"))
        print(f"the image: {self.bytes / MIB:.0f} MiB, stored in {time.monotonic() - start:.1f} s")

    def clone(self):
        old, self.number = f"v{self.number}", self.number + 1
        new = f"v{self.number}.partial"
        os.mkdir(self.at(new))
        how, start = "link", time.monotonic()
        try:
            os.link(self.at(old, "image"), self.at(new, "image"))
        except OSError:
            how = "cp"
            harness.run(["cp", "--reflink=auto", self.at(old, "image"), self.at(new, "image")])
        return new, how, time.monotonic() - start

    def pieces(self, size):
        """Returns separate pieces of the image in random order, a hundredth of it in total."""
        count = max(1, self.bytes // 100 // size)
        places = random.Random(size).sample(range(self.bytes // size), count)
        return [place * size for place in places]

    def case(self, name, change):
        """Clones, changes the clone and the image on the disk, seals, compares."""
        before = self.stored()
        new, how, clone_s = self.clone()
        cloned = self.stored()
        start = time.monotonic()
        change(self.at(new, "image"))
        change_s, start = time.monotonic() - start, time.monotonic()
        while True:
            try:
                os.rename(self.at(new), self.at(f"v{self.number}"))
                break
            except OSError as error:  # The kernel reports the last close with a delay.
                if time.monotonic() - start > 5:
                    raise error
        seal_s = time.monotonic() - start
        stored = self.stored() - cloned
        harness.run(["cmp", self.image, self.at(f"v{self.number}", "image")])
        share = stored / self.bytes * 100
        self.worst = max(self.worst, share)
        print(f"{name:24} {share:6.2f} % stored ({stored / MIB:.1f} MiB)   clone by {how} "
              f"{clone_s:.2f} s, {(cloned - before) / MIB:.1f} MiB; write {change_s:.2f} s, "
              f"seal {seal_s:.2f} s; peak {self.mount.peak_rss_mib():.0f} MiB", flush=True)

    def overwrite(self, size):
        def change(path):
            for target in (path, self.image):
                rng = random.Random(1000 + self.number)
                fd = os.open(target, os.O_WRONLY)
                for place in self.pieces(size):
                    os.pwrite(fd, rng.randbytes(size), place)
                os.close(fd)
        return change

    def rsync_in_place(self, path):
        fd = os.open(self.image, os.O_WRONLY)
        for place in self.pieces(65536):
            os.pwrite(fd, random.Random(place).randbytes(65536), place)
        os.close(fd)
        harness.run(["rsync", "--inplace", "--no-whole-file", "--ignore-times", self.image, path])

    def run(self):
        self.first()
        self.case("one piece", self.overwrite(self.bytes // 100 // 4096 * 4096))
        self.case("64 KiB pieces", self.overwrite(65536))
        self.case("4 KiB pieces", self.overwrite(4096))
        self.case("rsync --inplace, 64 KiB", self.rsync_in_place)
        self.repository.umount(self.mount)
        harness.run([self.args.varve, "check", "--read-data", self.repository.path])


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--image-bytes", type=harness.parse_bytes, default="1G")
    options.add_argument("--compression", default="none")
    options.add_argument("--share-max", type=float, help="fail if a case stores more per cent")
    args = harness.parse(options)
    bench = Bench(args, harness.Work(args.dir, "overwrite"))
    print(harness.machine())
    bench.run()
    if args.share_max and bench.worst > args.share_max:
        sys.exit(f"FAILED: {bench.worst:.2f} % is above {args.share_max} %")


if __name__ == "__main__":
    main()
