#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the speed of `varve check --read-data` with cat, and times the repair of a catalog.

The repair rebuilds a lost catalog. All read from a cold page cache, in turn. With --check, the run
fails if checking is slower than 0.6 of cat.
"""

import glob
import os
import shutil
import statistics
import sys

import harness

RATIO_MIN = 0.6


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--size", default="1G", help="bytes to store (default: 1G)")
    options.add_argument("--compression", default="zstd")
    options.add_argument("--check", action="store_true", help="fail if the ratio is below 0.6")
    args = harness.parse(options)
    size = harness.parse_bytes(args.size)
    work = harness.Work(args.dir, "check")
    repo, tree = work.at("repo"), work.at("tree")
    os.mkdir(tree)
    # Half of the data is compressible.
    with open("/dev/urandom", "rb") as random:
        for n in range(16):
            with open(f"{tree}/{n}", "wb") as file:
                for _ in range(size // 16 // (2 * harness.MIB)):
                    file.write(random.read(harness.MIB))
                    file.write(random.read(harness.MIB // 2).hex().encode())
    harness.run([args.varve, "-q", "init", "--compression", args.compression, repo])
    harness.run([args.varve, "-q", "store", repo, "s/v1", tree])
    shutil.rmtree(tree)
    files = sorted(glob.glob(f"{repo}/series/*/active/*") + glob.glob(f"{repo}/series/*/volumes/*"))
    stored = sum(os.path.getsize(name) for name in files)
    seconds = {"cat": [], "check": [], "repair": []}
    for _ in range(args.rounds):
        harness.drop_caches()
        seconds["cat"].append(harness.run(["cat", *files]).seconds)
        harness.drop_caches()
        seconds["check"].append(
            harness.run([args.varve, "-q", "check", "--read-data", repo]).seconds)
        shutil.rmtree(f"{repo}/catalog")
        harness.drop_caches()
        seconds["repair"].append(
            harness.run([args.varve, "-q", "repair", "--catalog-only", "--yes", repo]).seconds)
    for name, times in seconds.items():
        print(f"{name}: {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f}), "
              f"{stored / harness.MIB / statistics.median(times):.0f} MiB/s")
    ratio = statistics.median(seconds["cat"]) / statistics.median(seconds["check"])
    print(f"check is {ratio:.2f} of cat; a catalog is rebuilt in "
          f"{statistics.median(seconds['repair']) / (stored / (1 << 30)):.2f} s/GiB; "
          f"load {os.getloadavg()[0]:.1f}")
    if args.check and ratio < RATIO_MIN:
        sys.exit(f"FAILED: below {RATIO_MIN}")


if __name__ == "__main__":
    main()
