#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the pass that removes duplicates from the pool, outside of the writes.

Stores the trees of several hosts and versions (the kinds of pool.py) with an index that misses
duplicates, and without arranging. Then `varve arrange` makes the duplicates aliases. Prints what is
stored before and after, relative to an exact index; the bytes read and written for each byte
reclaimed; the time for each GiB of the pool, at idle priority; and the restore speed factor of the
newest versions before and after: the MiB that a `cat` of all files gets for each request of stored
data, through a mount.
"""

import json
import os
import shutil
import sys
import time

import harness
import pool
import pool_kinds
from harness import MIB

IDLE = ["nice", "-n", "10", "ionice", "-c", "idle"]


def store_all(args, repository, index, trees):
    harness.run([args.varve, "init", "--placement", "pool", "--pool-index", index, repository])
    for (host, version), tree in trees:
        harness.run([args.varve, "store", "--no-arrange", repository, f"host{host}/v{version}", tree])


def speed_factor(args, work, repository):
    """Returns the MiB that each request of a cat of the newest versions delivers, and the requests."""
    point = work.at("mnt")
    mount = harness.Mount([args.varve, "mount", "-f", "-o", "noarrange", repository, point], point,
                          work.at("log"))
    for host in range(args.hosts):
        harness.run(["sh", "-c", f"find '{point}/host{host}/v{args.versions}' -type f -print0 | "
                                 "sort -z | xargs -0 cat > /dev/null"])
    lines = harness.output([args.varve, "stats", "--live", "--json", repository]).splitlines()
    metrics = {line["name"]: line.get("value") for line in map(json.loads, lines)}
    requests = metrics["varve_restore_requests_total"]
    delivered = metrics["varve_restore_delivered_bytes_total"]
    mount.unmount()
    return delivered / MIB / requests, requests


def arrange(args, repository):
    """Returns the bytes read and written, and the seconds."""
    start = time.monotonic()
    lines = harness.output(IDLE + [args.varve, "arrange", "--json", repository]).splitlines()
    seconds = time.monotonic() - start
    reports = [json.loads(line) for line in lines]
    return (sum(one["bytes_read"] for one in reports), sum(one["bytes_written"] for one in reports), seconds)


def measure(args, work, index, trees, exact):
    repository = work.at("repo-" + index.replace(":", "-"))
    store_all(args, repository, index, trees)
    before = pool.stats_of(args, repository)
    factor_before, requests_before = speed_factor(args, work, repository)
    read, written, seconds = arrange(args, repository)
    after = pool.stats_of(args, repository)
    factor_after, requests_after = speed_factor(args, work, repository)
    harness.run([args.varve, "check", "--read-data", repository])
    freed = before["container_bytes"] - after["container_bytes"]

    def per_freed(count):
        return f"{count / freed:.2f}" if freed > MIB else "-"

    print(f"{args.kind:<10}{index:<15}{before['unique_bytes'] / exact:>9.4f}"
          f"{after['unique_bytes'] / exact:>9.4f}{freed / MIB:>10.1f}{per_freed(read):>8}"
          f"{per_freed(written):>9}{seconds / (before['pool_bytes'] / (1 << 30)):>9.2f}"
          f"{factor_before:>9.3f}{factor_after:>8.3f}{requests_before:>8}{requests_after:>8}", flush=True)
    shutil.rmtree(repository)


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--kind", default="source", choices=("packages", *pool_kinds.KINDS))
    options.add_argument("--packages", help="folder that keeps the unpacked packages")
    options.add_argument("--hosts", type=int, default=6)
    options.add_argument("--versions", type=int, default=5)
    options.add_argument("--seed", type=int, default=1, help="for packages")
    options.add_argument("--index", action="append", help="as for varve init; may be given again")
    args = harness.parse(options)
    work = harness.Work(args.dir, "post-pass")
    if args.kind == "packages":
        pool.build_packages(args, work)
    else:
        pool_kinds.KINDS[args.kind](work.at("trees"), args.hosts, args.versions)
    trees = [((host, version), work.at("trees", f"host{host}-v{version}"))
             for version in range(1, args.versions + 1) for host in range(args.hosts)]
    store_all(args, work.at("repo-exact"), "exact", trees)
    exact = pool.stats_of(args, work.at("repo-exact"))["unique_bytes"]
    factor, requests = speed_factor(args, work, work.at("repo-exact"))
    shutil.rmtree(work.at("repo-exact"))
    print(f"exact: {exact / MIB:.1f} MiB, {factor:.3f} MiB in each of {requests} requests")
    print(f"{'kind':<10}{'index':<15}{'of exact':>9}{'after':>9}{'freed MiB':>10}{'read/B':>8}{'write/B':>9}"
          f"{'s/GiB':>9}{'factor':>9}{'after':>8}{'reqs':>8}{'after':>8}")
    for index in args.index or ("zero-chunk:6", "zero-chunk:8", "stream"):
        measure(args, work, index, trees, exact)
    shutil.rmtree(work.at("trees"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
