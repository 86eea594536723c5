#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares encrypted repositories with plain ones.

Both kinds take turns in each step of each round, with new repositories, for three kinds of trees:
many small files, a tree like that of sources, and an image. Everything is in the page cache, so
the disk hides no cost; this includes the machine's memory of sequence numbers (decision 85). The ratios are those of plain to encrypted in the same round: 1.00 is the
same speed, and smaller is slower. "CPU" counts the command and the daemon. With --before, a plain
repository of another program takes turns, too; the last column is its processor time divided by
that of the plain one. With --check, the run fails if a median of wall ratios is below 0.9, or if
more than 1.01 of the bytes are stored. The rows "stored" count all files but the reserve; those
"padding aside" leave out what pads containers and manifests (with their headers, in plain
repositories, too) and the free pages of the catalog.
"""

import os
import random
import shutil
import sys
import time

import harness
from harness import MIB, median, spread

RATIO_MIN = 0.9
BYTES_MAX = 1.01
BLOCK = 64 << 10
MODES = ("plain", "encrypted")


def make_trees(args, work, kind):
    """Returns two trees; 2 % of the bytes of the second one differ."""
    first, second = work.at(kind), work.at(kind + "-changed")
    harness.make_tree(args, kind, first)
    harness.run(["cp", "-a", first, second])
    harness.change_tree(args, kind, second)
    os.sync()
    return first, second


def files_of(tree):
    return sorted(os.path.relpath(os.path.join(root, name), tree)
                  for root, _, names in os.walk(tree) for name in names)


def random_reads(point, names, reads, rng):
    for _ in range(reads):
        file = os.open(os.path.join(point, rng.choice(names)), os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        pages = max(1, (os.fstat(file).st_size - BLOCK) >> 12)
        os.pread(file, BLOCK, rng.randrange(pages) << 12)
        os.close(file)


def stored_bytes(path):
    """Returns the bytes of all files of the repository but the reserve for a full disk."""
    return sum(os.path.getsize(os.path.join(root, name))
               for root, _, names in os.walk(path) for name in names if name != "reserve")


def net_bytes(repository):
    """Returns the bytes of frames, index and used pages of the catalog: those without padding."""
    stats = repository.stats()
    return (stats["frame_bytes"] + stats["index_bytes"] + stats["catalog_bytes"]
            - stats["catalog_free_bytes"])


class Side:
    """One repository of a round, with its mount."""

    def __init__(self, args, work, mode):
        self.args, self.work, self.mode, self.mounted = args, work, mode, None
        path = work.at("repo-" + mode)
        program = args.before if mode == "before" else args.varve
        self.repository = (harness.EncryptedRepository(args, path, args.compression)
                           if mode == "encrypted" else
                           harness.Repository(program, path, args.compression))
        self.point = work.at("mnt-" + mode)

    def mount(self, *options):
        self.mounted = self.repository.mount(self.point, *options)

    def umount(self):
        self.repository.umount(self.mounted)

    def through_mount(self, work):
        """Returns wall and CPU seconds of a function that uses the mount."""
        before, own = self.mounted.cpu_seconds(), time.process_time()
        start = time.monotonic()
        done = work()
        seconds = time.monotonic() - start
        client = done.cpu if done else time.process_time() - own
        return harness.Run(seconds, client + self.mounted.cpu_seconds() - before)


class Round:
    """The steps of one kind of tree. Each returns wall and CPU seconds of one side."""

    def __init__(self, args, work, trees, number, reports):
        self.args, self.work, self.trees, self.number = args, work, trees, number
        self.names, self.reports = files_of(trees[0]), reports

    def store(self, side):
        return side.repository.command("store", "--no-arrange", "s/v1", self.trees[0])

    def store_changed(self, side):
        return side.repository.command("store", "--no-arrange", "s/v2", self.trees[1])

    def arrange(self, side):
        return side.repository.command("arrange")

    def check(self, side):
        return side.repository.command("check", "--read-data")

    def restore(self, side):
        out = self.work.target()
        done = side.repository.command("restore", "s/v1", out)
        if self.number == 0:
            harness.run(["diff", "-r", self.trees[0], out])
        shutil.rmtree(out)
        return done

    def ingest(self, side):
        self.reports["stored MiB"][side.mode].append(stored_bytes(side.repository.path) / MIB)
        self.reports["padding aside, MiB"][side.mode].append(net_bytes(side.repository) / MIB)
        side.mount()
        os.makedirs(os.path.join(side.point, "m/v"))
        before = side.mounted.requests()
        done = side.through_mount(
            lambda: harness.run(["cp", "-a", self.trees[0], os.path.join(side.point, "m/v/copy")]))
        self.reports["requests of ingest"][side.mode].append(side.mounted.requests() - before)
        return done

    def seal(self, side):
        return side.through_mount(lambda: harness.run(
            [side.repository.varve, "seal", os.path.join(side.point, "m/v")]))

    def copy_out(self, side):
        side.umount()
        side.mount("-o", "ro")
        out = self.work.target()
        before = side.mounted.requests()
        done = side.through_mount(
            lambda: harness.run(["cp", "-a", os.path.join(side.point, "m/v/copy"), out]))
        self.reports["requests of cp -a out"][side.mode].append(side.mounted.requests() - before)
        if self.number == 0:
            harness.run(["diff", "-r", self.trees[0], out])
        shutil.rmtree(out)
        return done

    def reads(self, side):
        side.umount()
        side.mount("-o", "ro")
        rng = random.Random(self.number)
        done = side.through_mount(lambda: random_reads(
            os.path.join(side.point, "s/v2"), self.names, self.args.reads, rng))
        side.umount()
        return done


STEPS = (("store", Round.store), ("store, 2 % changed", Round.store_changed),
         ("arrange", Round.arrange), ("check", Round.check), ("restore", Round.restore),
         ("ingest, cp -a", Round.ingest), ("seal", Round.seal), ("cp -a out", Round.copy_out),
         ("random reads", Round.reads))


def measure(args, work, kind):
    trees = make_trees(args, work, kind)
    files, size = harness.tree_size(trees[0])
    modes = MODES + (("before",) if args.before else ())
    times = {name: {mode: [] for mode in modes} for name, _ in STEPS}
    reports = {name: {mode: [] for mode in modes}
               for name in ("stored MiB", "padding aside, MiB", "requests of ingest", "requests of cp -a out")}
    for number in range(args.rounds):
        for tree in trees:
            harness.warm(tree)
        sides = [Side(args, work, mode) for mode in modes]
        steps = Round(args, work, trees, number, reports)
        for at, (name, step) in enumerate(STEPS):
            for side in sides[::-1 if (number + at) % 2 else 1]:
                times[name][side.mode].append(step(steps, side))
        for side in sides:
            side.repository.remove()
    print(f"\n{kind}: {files} files, {size / MIB:.0f} MiB")
    return report(times, reports)


def cpu_ratio(first, second):
    """Returns the median of the ratios of processor time in the same round."""
    return median([a.cpu / b.cpu for a, b in zip(first, second) if a.cpu and b.cpu] or [1])


def report(times, reports):
    """Prints the rows of a kind, and returns the names of those that miss a bound."""
    missed = []
    last = f"{'before':>8}" if "before" in times["store"] else ""
    print(f"{'':<20}{'plain':>9}{'range':>12}{'encrypted':>11}{'range':>12}"
          f"{'ratio':>7}{'range':>12}{'CPU':>6}{last}")
    for name, modes in times.items():
        plain, sealed = modes["plain"], modes["encrypted"]
        wall = [a.seconds / b.seconds for a, b in zip(plain, sealed)]
        cpu = cpu_ratio(plain, sealed)
        before = f"{cpu_ratio(modes['before'], plain):>8.2f}" if "before" in modes else ""
        columns = "".join(
            f"{median([r.seconds for r in runs]):>{width}.2f}"
            f"{spread([r.seconds for r in runs], '{:.2f}'):>12}"
            for runs, width in ((plain, 9), (sealed, 11)))
        print(f"{name:<20}{columns}{median(wall):>7.2f}{spread(wall, '{:.2f}'):>12}{cpu:>6.2f}{before}")
        if median(wall) < RATIO_MIN:
            missed.append(f"{name} {median(wall):.2f}")
    for name, modes in reports.items():
        plain, sealed = median(modes["plain"]), median(modes["encrypted"])
        print(f"{name:<22}{plain:>10.1f}{sealed:>10.1f}  ×{sealed / plain:.4f}")
        if name.startswith("padding") and sealed > BYTES_MAX * plain:
            missed.append(f"{name} {sealed / plain:.4f}")
    return missed


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0], rounds=5)
    harness.add_tree_options(options)
    options.add_argument("--reads", type=int, default=2000, help="at random")
    options.add_argument("--compression", default="zstd", help="as `varve init` takes it")
    options.add_argument("--before", help="another varve program, for a plain repository")
    options.add_argument("--check", action="store_true", help="fail if a bound is missed")
    args = harness.parse(options)
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")
    work = harness.Work(args.dir, "encryption")
    os.environ["XDG_STATE_HOME"] = work.at("state")
    print(f"{harness.machine()}; {args.rounds} rounds, compression {args.compression}")
    missed = [f"{kind}: {row}" for kind in args.kinds for row in measure(args, work, kind)]
    print(f"load at the end {os.getloadavg()[0]:.2f}")
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
