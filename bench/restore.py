#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares cold reads of a sealed version with plain reads of the same files from the same disk.

Each timing starts with an empty page cache and, for Varve, a fresh daemon. A large file is read in
order by cat; a tree is copied by `cp -a` out of the mount and by `varve restore`. A copy of the
same tree from the page cache shows the maximum speed of cp. Needs root for
/proc/sys/vm/drop_caches.
"""

import os
import sys

import harness
from harness import MIB, median, spread


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.peak_mib = 0.0
        self.repository = None

    def prepare(self):
        args, work = self.args, self.work
        harness.run([args.varve_gen, "tree", "--seed=5", f"--bytes={args.large_bytes}",
                     f"--file-bytes={args.large_bytes}:{args.large_bytes}", "--compressible=0",
                     work.at("large")])
        (large,) = [os.path.join(root, name) for root, _, names in os.walk(work.at("large"))
                    for name in names]
        os.mkdir(work.at("source"))
        os.rename(large, work.at("source", "large"))
        harness.run(["cp", "-a", args.tree, work.at("source", "tree")])
        self.repository = harness.Repository(args.varve, work.at("repo"), args.compression)
        mount = self.repository.mount(work.at("mnt"))
        os.mkdir(work.at("mnt", "bench"))
        os.mkdir(work.at("mnt", "bench/v1"))
        for name in ("large", "tree"):
            harness.run(["cp", "-a", work.at("source", name), work.at("mnt", "bench/v1", name)])
        self.repository.seal(mount, "bench/v1")
        self.repository.umount(mount)
        return harness.tree_size(work.at("source", "tree"))

    def through_mount(self, command):
        """Times a command on a fresh read-only mount with nothing cached."""
        harness.drop_caches()
        mount = self.repository.mount(self.work.at("mnt"), "-o", self.args.mount_options)
        seconds = harness.run(command).seconds
        self.peak_mib = max(self.peak_mib, mount.peak_rss_mib())
        self.repository.umount(mount)
        return seconds

    def plain(self, command):
        harness.drop_caches()
        return harness.run(command).seconds

    def cached(self, command):
        harness.drop_caches()
        source = self.work.at("source/tree")
        # tar reads nothing if it writes to /dev/null directly.
        harness.run(["sh", "-c", 'tar -C "$1" -cf - . | cat >/dev/null', "sh", source])
        return harness.run(command).seconds

    def round(self, check):
        """Returns the seconds of the six reads, by name."""
        at = self.work.at

        def timed(time, *command):
            out = self.work.target()
            seconds = time([*command, out])
            if check:
                harness.run(["diff", "-r", "--no-dereference", at("source/tree"), out])
            return seconds

        seconds = {
            "cat": self.plain(["cat", at("source/large")]),
            "cat, mount": self.through_mount(["cat", at("mnt/bench/v1/large")]),
        }
        seconds["cp -a"] = timed(self.plain, "cp", "-a", at("source/tree"))
        seconds["cp -a, cached"] = timed(self.cached, "cp", "-a", at("source/tree"))
        seconds["cp -a, mount"] = timed(self.through_mount, "cp", "-a", at("mnt/bench/v1/tree"))
        seconds["varve restore"] = timed(self.plain, self.args.varve, "-q", "restore",
                                         self.repository.path, "bench/v1/tree")
        return seconds


def report(rounds, names, base, size):
    usual = median([r[base] for r in rounds])
    for name in names:
        seconds = [r[name] for r in rounds]
        rates = [size / MIB / s for s in seconds]
        print(f"{name:<16}{size / MIB / median(seconds):>8.0f} MiB/s {spread(rates):>12}"
              f"{usual / median(seconds):>8.0%}")


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--tree", default="/usr/share", help="the tree to copy (read only)")
    options.add_argument("--large-bytes", type=harness.parse_bytes, default=1 << 30)
    options.add_argument("--compression", default="none", help="as `varve init` takes it")
    options.add_argument("--mount-options", default="ro")
    args = harness.parse(options)
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")

    bench = Bench(args, harness.Work(args.dir, "restore"))
    files, size = bench.prepare()
    print(f"{harness.machine()}; {args.rounds} rounds, compression {args.compression}")
    rounds = [bench.round(check=number == 0) for number in range(args.rounds)]
    print(f"\none file of {args.large_bytes / MIB:.0f} MiB, cold")
    report(rounds, ("cat", "cat, mount"), "cat", args.large_bytes)
    print(f"\n{files} files of {args.tree}, {size / MIB:.0f} MiB, cold")
    report(rounds, ("cp -a", "cp -a, cached", "cp -a, mount", "varve restore"), "cp -a", size)
    print(f"daemon's peak RSS {bench.peak_mib:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
