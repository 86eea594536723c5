#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a series of real trees takes and costs: stored, arranged, read back, deleted from.

The trees are given in the order of their versions; without any, a tree is edited from version to
version. Each goes through `varve store` and `varve arrange`, under the tiered and the original
policy, without compression, so that the bytes compare with those of an exact index over the same
chunks. Reads are those of `varve restore`: all that the process reads from files, whether a disk
was needed or not. Of times, only those inside one run compare.
"""

import json
import os
import shutil
import sys
import time

import harness
from harness import MIB


def bytes_read():
    """By this process and all that it has waited for."""
    with open("/proc/self/io", encoding="ascii") as counters:
        return int(counters.readline().split()[1])


def chunk_files(repository):
    """Sizes of the files that hold chunks, by path."""
    sizes = {}
    for root, _, names in os.walk(os.path.join(repository.path, "series")):
        for name in names:
            if name.endswith((".seg", ".vol")):
                path = os.path.join(root, name)
                sizes[path] = os.path.getsize(path)
    return sizes


def edited_trees(args, work):
    """Versions of one tree: some percent of the bytes change in a tenth of the files."""
    trees = [work.at("tree1")]
    harness.run(["cp", "-a", args.tree, trees[0]])
    for number in range(2, args.versions + 1):
        trees.append(work.at(f"tree{number}"))
        harness.run(["cp", "-a", trees[-2], trees[-1]])
        harness.run([args.varve_gen, "edit", f"--seed={number}", f"--change-rate={args.change}",
                     "--mix=60/20/20", "--files-fraction=0.1", trees[-1]])
    return trees


class Series:
    def __init__(self, args, work, policy):
        self.args, self.work, self.policy = args, work, policy
        self.repository = harness.Repository(args.varve, work.at(policy), "none")
        self.written = self.read = self.backups = self.new = 0
        self.dead = 0.0
        self.names = []

    def varve(self, *words):
        return [json.loads(line) for line in
                harness.output([self.args.varve, *words]).splitlines()]

    def store(self, number, tree):
        path = self.repository.path
        name = f"s/v{number:03}"
        harness.run([self.args.varve, "-q", "store", "--no-arrange", path, name, tree])
        settings = ["--policy", self.policy, "--window", str(self.args.window)]
        (report,) = self.varve("arrange", "--json", *(settings if not self.names else []), path)
        self.names.append(name)
        stats = self.repository.stats()
        live = stats["active_bytes"] - stats["dead_bytes"]
        if live:
            self.dead = max(self.dead, (stats["dead_bytes"] + stats["departing_bytes"]) / live)
        if number == 1:
            return
        (version,) = self.varve("stat", "--json", path, name)
        self.backups += version["logical_bytes"]
        self.new += version["new_bytes"]
        self.written += report["bytes_written"]
        self.read += report["bytes_read"]

    def report(self, exact):
        stats = self.repository.stats()
        live = stats["active_bytes"] - stats["dead_bytes"] + stats["volume_bytes"]
        files = sum(chunk_files(self.repository).values())
        heads = files - live - stats["dead_bytes"]
        print(f"{self.policy}, window {self.args.window}")
        print(f"  a version: arranging writes {self.written / self.backups:.3f} and reads "
              f"{self.read / self.backups:.3f} of a backup, "
              f"{self.written / max(self.new, 1):.2f} bytes a new one")
        print(f"  files {files / exact:.4f} of exact deduplication ({exact / MIB:.1f} MiB): "
              f"1 + stored again {live / exact - 1:.2%} + dead {stats['dead_bytes'] / exact:.2%} "
              f"+ heads and padding {heads / exact:.2%}")
        print(f"  dead and departing at most {self.dead:.1%} of the active set")
        for which, name in (("newest", self.names[-1]),
                            ("middle", self.names[len(self.names) // 2]),
                            ("oldest", self.names[0])):
            print(f"  {which}: {self.restore(name):.3f} bytes read for each one restored")

    def restore(self, name):
        out = self.work.at("out")
        before = bytes_read()
        harness.run([self.args.varve, "-q", "restore", self.repository.path, name, out])
        read = bytes_read() - before
        size = harness.tree_size(out)[1]
        shutil.rmtree(out)
        return read / size

    def delete(self, names):
        before = chunk_files(self.repository)
        start = time.monotonic()
        lines = self.varve("rm", "--no-arrange", "--json", self.repository.path, *names)
        seconds = time.monotonic() - start
        after = chunk_files(self.repository)
        moved = sum(max(0, size - before.get(path, 0)) for path, size in after.items())
        (freed,) = [line["freed_bytes"] for line in lines if line["type"] == "deletion"]
        print(f"  deleting {len(names)} of {len(self.names)}: {seconds:.2f} s, "
              f"{freed / MIB:.1f} MiB came back, {moved} bytes of chunks moved")
        self.names = [name for name in self.names if name not in names]


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--exact-dedup", help="default: BUILD/bench/exact-dedup")
    options.add_argument("--tree", default="/usr/include", help="what is edited, without TREEs")
    options.add_argument("--versions", type=int, default=12, help="of the edited tree")
    options.add_argument("--change", type=float, default=0.03, help="rate of the edits")
    options.add_argument("--window", type=int, default=2)
    options.add_argument("--policies", default="tiered,original")
    options.add_argument("trees", nargs="*", metavar="TREE")
    args = harness.parse(options)
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")
    args.exact_dedup = args.exact_dedup or os.path.join(args.build, "bench/exact-dedup")

    work = harness.Work(args.dir, "series")
    trees = args.trees or edited_trees(args, work)
    counts = harness.output([args.exact_dedup, *trees]).splitlines()
    exact = json.loads(counts[-1])["unique_bytes"]
    print(f"{harness.machine()}; {len(trees)} versions, "
          f"{sum(json.loads(line)['bytes'] for line in counts) / MIB:.1f} MiB")
    for policy in args.policies.split(","):
        series = Series(args, work, policy)
        for number, tree in enumerate(trees, 1):
            series.store(number, tree)
        series.report(exact)
        series.delete([series.names[len(series.names) // 2]])
        series.delete(series.names[1::4])
        series.delete(series.names[::2])
        harness.run([args.varve, "-q", "check", "--read-data", series.repository.path])
        series.repository.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
