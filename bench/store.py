#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `varve store` of a tree of small files that was stored before.

Taking turns, each with empty caches: `find -ls`, which reads the metadata of each file; the store of the
unchanged tree; the store after ten files changed; and the store that reads every file. Needs root for
/proc/sys/vm/drop_caches.
"""

import os
import time

import harness
from harness import median, spread
from link_dest import make_source

CHANGED = 10


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.repository = harness.Repository(args.varve, work.at("repo"), "zstd:1")
        self.versions = 0

    def store(self, *options):
        self.versions += 1
        return harness.run([self.args.varve, "-q", "store", *options, self.repository.path,
                            f"s/v{self.versions}", self.work.at("source")])

    def change(self, number):
        """Writes to files that are far from each other."""
        paths = []
        for root, _, names in sorted(os.walk(self.work.at("source"))):
            paths += [os.path.join(root, name) for name in names]
        for path in paths[::len(paths) // CHANGED][:CHANGED]:
            with open(path, "ab") as file:
                file.write(b"%d" % number)

    def run(self):
        make_source(self.work.at("source"), self.args.files)
        time.sleep(3)  # A file that was changed within 2 seconds before a store is read again.
        kinds = {
            "find -ls": lambda: harness.run(["find", self.work.at("source"), "-ls"]),
            "unchanged": self.store,
            f"{CHANGED} changed": self.store,
            "reading all": lambda: self.store("--checksum"),
        }
        print(f"first: {self.store().seconds:.2f} s")
        seconds = {kind: [] for kind in kinds}
        for number in range(self.args.rounds):
            for kind, run in kinds.items():
                if kind.endswith("changed") and kind != "unchanged":
                    self.change(number)
                    time.sleep(3)
                harness.drop_caches()
                seconds[kind].append(run().seconds)
        harness.run([self.args.varve, "-q", "check", self.repository.path])
        for kind, values in seconds.items():
            print(f"{kind:12} {median(values):.2f} s ({spread(values, '{:.2f}')})")
        ratio = median(seconds["unchanged"]) / median(seconds["find -ls"])
        print(f"ratio unchanged / find -ls: {ratio:.2f}")


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--files", type=int, default=21_400)
    args = harness.parse(options)
    work = harness.Work(args.dir, "store")
    print(harness.machine())
    Bench(args, work).run()


if __name__ == "__main__":
    main()
