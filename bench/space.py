#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the space that Varve takes for consecutive versions of a real tree.

Version 1 is a copy of the tree, 2 an edited copy (bytes changed in some files), and 3 differs from
2 in 1 % of the files. Compares the unique bytes with those of an exact index over the same chunks,
and all other bytes with the unique bytes. Measures no times.
"""

import json
import os
import sys

import harness
from harness import MIB

# Components of a repository, as `varve stats --json` names them.
PARTS = ("catalog_bytes", "index_bytes", "staging_bytes")


def metadata_of(stats):
    """Returns the bytes of everything but the frames: containers' headers and tables, catalog,
    index, staging."""
    return stats["container_bytes"] - stats["frame_bytes"] + sum(stats[part] for part in PARTS)


def edit(args, tree, seed, rate, fraction):
    done = harness.output([args.varve_gen, "edit", f"--seed={seed}", f"--change-rate={rate}",
                           "--mix=60/20/20", f"--files-fraction={fraction}", tree])
    return done.strip()


def store(repository, work, source, version):
    mount = repository.mount(work.at("mnt"))
    os.makedirs(work.at("mnt", "bench"), exist_ok=True)
    os.mkdir(work.at("mnt", "bench", version))
    harness.run(["cp", "-a", source, work.at("mnt", "bench", version, "tree")])
    repository.seal(mount, f"bench/{version}")
    repository.umount(mount)
    stats = repository.stats()
    stats["disk_bytes"] = harness.disk_usage(repository.path)
    return stats


def exact_counts(args, trees):
    lines = harness.output([args.exact_dedup, "--chunker", args.chunker, "--sizes", args.sizes,
                            *trees]).splitlines()
    return [json.loads(line) for line in lines]


def report_dedup(all_stats, exact):
    print(f"\n{'version':<9}{'unique MiB':>12}{'exact MiB':>12}{'more':>9}"
          f"{'dedup':>9}{'exact':>9}")
    logical = 0
    for number, (stats, counts) in enumerate(zip(all_stats, exact), 1):
        logical += counts["bytes"]
        unique, least = stats["chunk_bytes"], counts["unique_bytes"]
        print(f"1..{number:<6}{unique / MIB:>12.2f}{least / MIB:>12.2f}{unique / least - 1:>9.2%}"
              f"{logical / unique:>9.4f}{logical / least:>9.4f}")


def report_metadata(all_stats):
    print(f"\n{'version':<9}{'containers':>12}{'catalog':>10}{'index':>10}{'staging':>10}"
          f"{'all KiB':>10}{'of unique':>11}{'added':>10}{'of first':>10}")
    before = 0
    for number, stats in enumerate(all_stats, 1):
        total = metadata_of(stats)
        columns = [stats["container_bytes"] - stats["frame_bytes"]] + [stats[p] for p in PARTS]
        text = "".join(f"{value / 1024:>{width}.0f}" for value, width in
                       zip([*columns, total], (12, 10, 10, 10, 10)))
        first = metadata_of(all_stats[0])
        print(f"1..{number:<6}{text}{total / stats['chunk_bytes']:>11.2%}"
              f"{(total - before) / 1024:>10.0f}{(total - before) / first:>10.2%}")
        before = total
    print("\nby the disk's blocks: " + ", ".join(
        f"{s['disk_bytes'] / MIB:.1f} MiB, {s['disk_bytes'] / s['chunk_bytes'] - 1:+.2%} of unique"
        for s in all_stats))


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--exact-dedup", help="default: BUILD/bench/exact-dedup")
    options.add_argument("--tree", default="/usr/share", help="the tree to start from (read only)")
    options.add_argument("--compression", default="none", help="as `varve init` takes it")
    options.add_argument("--chunker", default="gear16", help="the repository's")
    options.add_argument("--sizes", default="2048:8192:65536", help="the repository's")
    args = harness.parse(options)
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")
    args.exact_dedup = args.exact_dedup or os.path.join(args.build, "bench/exact-dedup")

    work = harness.Work(args.dir, "space")
    trees = [work.at(f"tree{number}") for number in (1, 2, 3)]
    harness.run(["cp", "-a", args.tree, trees[0]])
    harness.run(["cp", "-a", trees[0], trees[1]])
    print("version 2:", edit(args, trees[1], 11, 0.02, 0.2))
    harness.run(["cp", "-a", trees[1], trees[2]])
    print("version 3:", edit(args, trees[2], 12, 0.0001, 0.01))

    repository = harness.Repository(args.varve, work.at("repo"), args.compression)
    all_stats = [store(repository, work, tree, f"v{number}")
                 for number, tree in enumerate(trees, 1)]
    report_dedup(all_stats, exact_counts(args, trees))
    report_metadata(all_stats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
