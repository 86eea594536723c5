#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ingest while the daemon arranges in the background with ingest under `-o noarrange`.

Copies and seals versions of a tree one right after the other. Some percent of the bytes change
between versions. The daemon arranges after one seal while the next versions come in. The mounts
take turns in every round, each with a new repository; the source is in the page cache. The time is
that of the copies and seals after the first two, which leave nothing to arrange. The ratio is that
of the medians. Memory is the daemon's maximum over all rounds, also separately for its own memory
and for mapped files. These are sampled, and their maxima may be at different times.
"""

import os
import sys
import time

import harness
from harness import MIB, median, spread

WARM_UP = 2  # Number of versions before the measurement.


def make_trees(args, work):
    trees = [work.at("tree1")]
    harness.run([args.varve_gen, "tree", "--seed=3", f"--bytes={args.bytes}",
                 "--file-bytes=lognormal", "--compressible=0", trees[0]])
    for number in range(2, args.versions + 1):
        trees.append(work.at(f"tree{number}"))
        harness.run(["cp", "-a", trees[-2], trees[-1]])
        harness.run([args.varve_gen, "edit", f"--seed={number}", f"--change-rate={args.change}",
                     "--mix=60/20/20", "--files-fraction=0.3", trees[-1]])
    os.sync()
    return trees


class Mode:
    """One way to mount, with its measurements."""

    def __init__(self, name, options, policy):
        self.name, self.options, self.policy = name, options, policy
        self.seconds, self.arranged = [], []
        self.peak = self.anonymous = self.mapped = 0.0  # Maxima of all rounds, in MiB.

    def note_memory(self, mount, memory):
        self.peak = max(self.peak, mount.peak_rss_mib())
        self.anonymous = max(self.anonymous, memory.anonymous)
        self.mapped = max(self.mapped, memory.mapped)


def run_round(args, work, mode, trees, verify):
    repository = harness.Repository(args.varve, work.at("repo"), "none")
    harness.run([args.varve, "arrange", "--policy", mode.policy, repository.path])
    mount = repository.mount(work.at("mnt"), *mode.options)
    os.mkdir(work.at("mnt", "s"))
    seconds = 0.0
    with harness.MemoryWatch(mount) as memory:
        for number, tree in enumerate(trees, 1):
            start = time.monotonic()
            os.mkdir(work.at("mnt", f"s/v{number}"))
            harness.run(["cp", "-r", tree, work.at("mnt", f"s/v{number}/copy")])
            repository.seal(mount, f"s/v{number}")
            if number > WARM_UP:
                seconds += time.monotonic() - start
        mode.note_memory(mount, memory)
    mode.seconds.append(seconds)
    mode.arranged.append(repository.stats()["volume_bytes"] / MIB)
    if verify:
        for number, tree in enumerate(trees, 1):
            harness.run(["diff", "-r", tree, work.at("mnt", f"s/v{number}/copy")])
    repository.umount(mount)
    repository.remove()
    os.sync()


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--bytes", type=harness.parse_bytes, default=256 << 20,
                         help="of a version (default 256M)")
    options.add_argument("--versions", type=int, default=8)
    options.add_argument("--change", type=float, default=0.08, help="rate of the edits")
    options.add_argument("--rate", help="as -o arrange_rate= takes it, for another mode")
    args = harness.parse(options)
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")

    work = harness.Work(args.dir, "arranging")
    trees = make_trees(args, work)
    modes = [Mode("noarrange", ["-o", "noarrange"], "tiered"),
             Mode("tiered", [], "tiered"),
             Mode("original", [], "original")]
    if args.rate:
        modes.append(Mode(f"tiered, {args.rate}", ["-o", f"arrange_rate={args.rate}"], "tiered"))
    size = sum(harness.tree_size(tree)[1] for tree in trees[WARM_UP:])
    print(f"{harness.machine()}; {args.rounds} rounds of {args.versions} versions of "
          f"{harness.tree_size(trees[0])[1] / MIB:.0f} MiB, {args.change:.0%} change")
    for number in range(args.rounds):
        for tree in trees:
            harness.warm(tree)
        for mode in modes:
            run_round(args, work, mode, trees, verify=number == args.rounds - 1)
    base = median(modes[0].seconds)
    print(f"{'':<16}{'MiB/s':>8}{'range':>12}{'ratio':>8}{'archived MiB':>14}"
          f"{'peak MiB':>10}{'own':>6}{'mapped':>8}")
    for mode in modes:
        rates = [size / MIB / seconds for seconds in mode.seconds]
        print(f"{mode.name:<16}{median(rates):>8.0f}{spread(rates):>12}"
              f"{base / median(mode.seconds):>8.0%}"
              f"{median(mode.arranged):>14.1f}{mode.peak:>10.0f}{mode.anonymous:>6.0f}"
              f"{mode.mapped:>8.0f}")
    print(f"load at the end {os.getloadavg()[0]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
