#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of each phase for one directory with many entries: per entry, and in memory.

For each size: create empty files, list them, look some up, seal, remount, list, look up; in the
next version all of them by hard links to the last (where that is offered, else created again),
remove one, seal. A cost per entry that does not grow with the number is linear. With --check,
the script fails where it grows by more than three fifths per doubling. That cost is processor time of
the daemon, of this process and of its children, which other work on the machine hardly changes.
"""

import os
import random
import sys
import time

import harness

LOOKUPS_MAX = 20_000
FREE_S = 0.4  # A shorter phase proves nothing about growth.


class Bench:
    def __init__(self, args, work, entries):
        self.args, self.work, self.entries = args, work, entries
        self.random = random.Random(entries)
        self.processor_s, self.memory_mib = {}, {}
        self.mount = None

    def used_s(self):
        """Returns the processor time of all that takes part."""
        return self.mount.cpu_seconds() + sum(os.times()[:4])

    def phase(self, name, count, call):
        with harness.MemoryWatch(self.mount) as memory:
            start, used = time.monotonic(), self.used_s()
            call()
            took, used = time.monotonic() - start, self.used_s() - used
        self.processor_s[name] = used, count
        self.memory_mib[name] = memory.anonymous
        print(f"{self.entries:9,} {name:22} {took:8.2f} s {took / count * 1e6:9.2f} µs each"
              f" {used:8.2f} s of a processor   daemon's own memory {memory.anonymous:5.0f} MiB, with mapped files "
              f"{self.mount.peak_rss_mib():5.0f} MiB so far", flush=True)

    def name(self, number):
        return f"entry-{number * 2654435761 % (1 << 32):08x}-{number:07}"

    def create(self, folder):
        at = os.open(folder, os.O_RDONLY)
        for number in range(self.entries):
            os.close(os.open(self.name(number), os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=at))
        os.close(at)

    def clone(self, source, folder):
        for number in range(self.entries):
            name = self.name(number)
            os.link(os.path.join(source, name), os.path.join(folder, name))

    def look_up(self, folder):
        count = min(self.entries, LOOKUPS_MAX)
        for number in self.random.sample(range(self.entries), count):
            os.lstat(os.path.join(folder, self.name(number)))

    def list(self, folder):
        """Lists only the names, as `ls -f` does."""
        count = 0
        with os.scandir(folder) as names:
            for _ in names:
                count += 1
        if count != self.entries:
            sys.exit(f"{count} entries in {folder}, not {self.entries}")

    def remount(self, repository):
        repository.umount(self.mount)
        harness.drop_caches()
        self.mount = repository.mount(self.work.at("mnt"))

    def can_clone(self, source, folder):
        try:
            os.link(os.path.join(source, self.name(0)), os.path.join(folder, "probe"))
        except OSError:
            return False
        os.unlink(os.path.join(folder, "probe"))
        return True

    def run(self):
        repository = harness.Repository(self.args.varve, self.work.at(f"repo-{self.entries}"),
                                        "zstd:1")
        mnt, entries = self.work.at("mnt"), self.entries
        lookups = min(entries, LOOKUPS_MAX)
        self.mount = repository.mount(mnt)
        os.mkdir(mnt + "/s")
        first, second = mnt + "/s/one/many", mnt + "/s/two/many"
        os.makedirs(first)
        self.phase("create", entries, lambda: self.create(first))
        self.phase("list open", entries, lambda: self.list(first))
        self.phase("look up open", lookups, lambda: self.look_up(first))
        self.phase("seal", entries, lambda: repository.seal(self.mount, "s/one"))
        self.phase("list sealed", entries, lambda: self.list(first))
        self.remount(repository)
        self.phase("list sealed, cold", entries, lambda: self.list(first))
        self.remount(repository)
        self.phase("look up sealed, cold", lookups, lambda: self.look_up(first))
        os.makedirs(second)
        if self.can_clone(first, second):
            self.phase("link from sealed", entries, lambda: self.clone(first, second))
        else:
            self.phase("create again", entries, lambda: self.create(second))
        self.phase("remove one", 1, lambda: os.unlink(os.path.join(second, self.name(1))))
        self.remount(repository)
        self.phase("seal without one", entries, lambda: repository.seal(self.mount, "s/two"))
        self.entries -= 1
        self.phase("list without one", entries, lambda: self.list(second))
        self.remove_all(repository, mnt + "/s/three", second)
        repository.umount(self.mount)
        harness.run([self.args.varve, "check", repository.path])
        repository.remove()

    def remove_all(self, repository, third, second):
        """Removes entries while it lists them, as rm -r does."""
        folder = third + "/many"
        os.makedirs(folder)
        self.entries += 1
        self.create(folder)
        self.phase("rm -r", self.entries, lambda: harness.run(["rm", "-r", folder]))
        os.mkdir(folder)
        repository.seal(self.mount, "s/three")
        if os.listdir(folder) or not os.listdir(second):
            sys.exit("rm -r left something, or took too much")


def grows(small, large):
    """Returns the phases whose processor time per entry rises by more than three fifths per doubling."""
    found = []
    doublings = max(1.0, len(bin(large.entries // small.entries)) - 3)
    for name, (used, count) in large.processor_s.items():
        before, count_before = small.processor_s.get(name, (0, 1))
        if used < FREE_S or count == 1:
            continue
        before = max(before, FREE_S / 8)
        if used / count > before / count_before * 1.6 ** doublings:
            found.append(f"{name}: {before / count_before * 1e6:.1f} → {used / count * 1e6:.1f} "
                         "µs of a processor an entry")
    return found


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--entries", default="10000,100000,1000000")
    options.add_argument("--memory-mib", type=float, help="fail if the daemon needs more")
    options.add_argument("--check", action="store_true", help="fail if a phase is not linear")
    args = harness.parse(options)
    work = harness.Work(args.dir, "scale")
    print(harness.machine())
    results = []
    for entries in args.entries.split(","):
        bench = Bench(args, work, int(entries))
        bench.run()
        results.append(bench)
    bad = []
    if args.check:
        for small, large in zip(results, results[1:]):
            bad += grows(small, large)
    for result in results:
        peak = max(result.memory_mib.values())
        if args.memory_mib and peak > args.memory_mib:
            bad.append(f"{peak:.0f} MiB for {result.entries} entries")
    for line in bad:
        print(f"FAILED: {line}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
