#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the speed and memory of series that share a pool with those of the placement lineage.

Each round makes a repository of either placement, by turns, and measures: `varve store` of a tree,
`varve store` of the same tree after a change of some files, a cold `cat` of all files of the newest
version through a read-only mount, and trees that are copied into as many series of one mount at the
same time. Shown are medians, ratios (lineage's seconds to the pool's: above 1, the pool is faster),
and the daemon's greatest memory without mapped files.
"""

import os
import random
import shutil
import subprocess
import sys
import time

import harness
from harness import MIB, median

PLACEMENTS = ("lineage", "pool")


def change(tree, seed, one_in):
    """Writes into the middle of some files."""
    rng = random.Random(seed)
    for root, folders, names in os.walk(tree):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            if os.path.islink(path) or rng.randrange(one_in):
                continue
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 2)
                file.write(rng.randbytes(1000))


def own_trees(folder, count, size):
    """Trees without common content, one for each series that is written at the same time."""
    for number in range(count):
        rng = random.Random(number)
        os.makedirs(os.path.join(folder, str(number)))
        for part in range(8):
            with open(os.path.join(folder, str(number), f"part-{part}"), "wb") as file:
                file.write(rng.randbytes(size // 8))
    return [os.path.join(folder, str(number)) for number in range(count)]


def measure(args, work, placement, tree, trees):
    repository, point, found = work.at("repo"), work.at("mnt"), {}
    harness.run([args.varve, "init", "--placement", placement, repository])
    for name, version in (("store", "v1"), ("next", "v2")):
        harness.drop_caches()
        harness.warm(tree)
        found[name] = harness.run([args.varve, "store", "--checksum", repository, f"s/{version}",
                                   tree]).seconds
        change(tree, version, 50)
    harness.drop_caches()
    mount = harness.Mount([args.varve, "mount", "-f", "-o", "ro", repository, point], point,
                          work.at("log"))
    found["read"] = harness.run(["sh", "-c", f"find '{point}/s/v2' -type f -print0 | "
                                             "xargs -0 cat > /dev/null"]).seconds
    mount.unmount()
    mount = harness.Mount([args.varve, "mount", "-f", repository, point], point, work.at("log"))
    for number in range(len(trees)):
        os.mkdir(os.path.join(point, f"t{number}"))
    harness.drop_caches()
    for one in trees:
        harness.warm(one)
    with harness.MemoryWatch(mount) as memory:
        started = time.monotonic()
        copies = [subprocess.Popen(["cp", "-r", one, os.path.join(point, f"t{number}/v.partial")])
                  for number, one in enumerate(trees)]
        failed = [copy for copy in copies if copy.wait() != 0]
        for number in range(len(trees)):
            os.rename(os.path.join(point, f"t{number}/v.partial"),
                      os.path.join(point, f"t{number}/v"))
        found["at once"] = time.monotonic() - started
    found["MiB"] = memory.anonymous
    mount.unmount()
    if failed:
        sys.exit("a copy failed")
    shutil.rmtree(repository)
    return found


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--tree", default="/usr/share", help="the tree to store")
    options.add_argument("--series", type=int, default=10, help="series written at the same time")
    options.add_argument("--bytes", type=harness.parse_bytes, default=48 * MIB,
                         help="size of the tree of each")
    args = harness.parse(options)
    work = harness.Work(args.dir, "pool-speed")
    trees = own_trees(work.at("own"), args.series, args.bytes)
    rounds = {placement: [] for placement in PLACEMENTS}
    for number in range(args.rounds):
        for placement in PLACEMENTS if number % 2 == 0 else reversed(PLACEMENTS):
            tree = work.at("tree")
            shutil.rmtree(tree, ignore_errors=True)
            harness.run(["cp", "-a", args.tree, tree])
            rounds[placement].append(measure(args, work, placement, tree, trees))
    files, size = harness.tree_size(args.tree)
    print(f"{files} files, {size / MIB:.0f} MiB; {args.series} series of {args.bytes / MIB:.0f} "
          f"MiB at once; {args.rounds} rounds")
    print(f"{'':<10}{'lineage':>10}{'pool':>10}{'ratio':>8}")
    for name in ("store", "next", "read", "at once", "MiB"):
        lineage, pool = (median([one[name] for one in rounds[placement]])
                         for placement in PLACEMENTS)
        print(f"{name:<10}{lineage:>10.2f}{pool:>10.2f}{lineage / pool:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
