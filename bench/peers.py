#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares backups by Varve, plain and encrypted, with those by restic and borg, encrypted.

All programs work on the same tree, in turn and in another order in each round: the first backup,
one after 2 % of the bytes have changed in place, restores of both, and a check that reads all
data. All use zstd. restic and borg derive their key in each command, and so does Varve if it makes
encrypted repositories itself. There are three kinds of trees: many small files, a tree like that of sources,
and an image. Everything is in the page cache. Programs that are not installed are left out.
"""

import os
import shutil
import sys

import harness
from harness import MIB, median, spread

STEPS = ("first backup", "second backup", "restore newest", "restore oldest", "check with data")
PASSPHRASE = "k" * 64


class Varve:
    def __init__(self, args, work, name):
        self.path, self.versions = work.at("varve"), 0
        self.repository = (
            harness.EncryptedRepository(args, self.path, "zstd", passphrase=True)
            if name.endswith("encrypted") else harness.Repository(args.varve, self.path, "zstd"))

    def backup(self, tree):
        self.versions += 1
        return self.repository.command("store", f"s/v{self.versions}", tree)

    def restore(self, number, out):
        return self.repository.command("restore", f"s/v{number}", out)

    def check(self):
        return self.repository.command("check", "--read-data")

    @staticmethod
    def root(out, _tree):
        return out


class Restic:
    def __init__(self, _args, work, _name):
        self.path = work.at("restic")
        self.env = {"RESTIC_PASSWORD": PASSPHRASE, "RESTIC_CACHE_DIR": work.at("restic-cache"),
                    "RESTIC_REPOSITORY": self.path}
        self.run("init", "--repository-version", "2")

    def run(self, *arguments):
        return harness.run(["restic", "-q", *arguments], env=self.env)

    def backup(self, tree):
        return self.run("backup", "--compression", "auto", tree)

    def restore(self, number, out):
        listed = harness.output(["restic", "-q", "snapshots", "--json"], env=self.env)
        snapshots = sorted(harness.json.loads(listed), key=lambda snapshot: snapshot["time"])
        return self.run("restore", snapshots[number - 1]["id"], "--target", out)

    def check(self):
        return self.run("check", "--read-data")

    @staticmethod
    def root(out, tree):
        return out + tree


class Borg:
    def __init__(self, _args, work, _name):
        self.path, self.versions = work.at("borg"), 0
        self.env = {"BORG_PASSPHRASE": PASSPHRASE, "BORG_BASE_DIR": work.at("borg-base")}
        harness.run(["borg", "--error", "init", "-e", "repokey-blake2", self.path], env=self.env)

    def backup(self, tree):
        self.versions += 1
        return harness.run(["borg", "create", "-C", "zstd,3", f"{self.path}::v{self.versions}",
                            tree], env=self.env)

    def restore(self, number, out):
        os.makedirs(out)
        return harness.run(["sh", "-c", 'cd "$1" && borg extract "$2"', "sh", out,
                            f"{self.path}::v{number}"], env=self.env)

    def check(self):
        return harness.run(["borg", "check", "--verify-data", self.path], env=self.env)

    @staticmethod
    def root(out, tree):
        return out + tree


def programs():
    known = {"varve, plain": Varve, "varve, encrypted": Varve}
    if shutil.which("restic"):
        known["restic"] = Restic
    if shutil.which("borg"):
        known["borg"] = Borg
    return known


def stored_bytes(path):
    """Returns the bytes of all files of a repository but Varve's reserve for a full disk."""
    return sum(os.path.getsize(os.path.join(root, name))
               for root, _, names in os.walk(path) for name in names if name != "reserve")


def run_round(args, work, kind, number, results):
    tree, first = work.at("tree"), work.at("first")
    harness.make_tree(args, kind, tree)
    harness.run(["cp", "-a", tree, first])
    os.sync()
    known = programs()
    order = list(known)
    order = order[number % len(order):] + order[:number % len(order)]
    sides = {name: harness.Work(work.path, "side") for name in order}
    made = {name: known[name](args, sides[name], name) for name in order}

    def step(row, function):
        for name in order:
            results[name][row].append(function(made[name]))

    def restore(which, original):
        def one(program):
            out = work.target()
            done = program.restore(which, out)
            if number == 0:
                harness.run(["diff", "-r", original, program.root(out, tree)])
            shutil.rmtree(out)
            return done
        return one

    step("first backup", lambda program: program.backup(tree))
    harness.change_tree(args, kind, tree)
    step("second backup", lambda program: program.backup(tree))
    step("restore newest", restore(2, tree))
    step("restore oldest", restore(1, first))
    step("check with data", lambda program: program.check())
    for name, program in made.items():
        results[name]["stored"].append(stored_bytes(program.path))
    files, size = harness.tree_size(tree)
    for path in (tree, first, *(side.path for side in sides.values())):
        shutil.rmtree(path)
    return files, size


def measure(args, work, kind):
    results = {name: {row: [] for row in (*STEPS, "stored")} for name in programs()}
    for number in range(args.rounds):
        files, size = run_round(args, work, kind, number, results)
    print(f"\n{kind}: {files} files, {size / MIB:.0f} MiB; seconds, median and range, CPU seconds")
    print(f"{'':<18}" + "".join(f"{row:>24}" for row in STEPS) + f"{'stored MiB':>12}")
    for name, rows in results.items():
        cells = []
        for row in STEPS:
            seconds = [run.seconds for run in rows[row]]
            cells.append(f"{median(seconds):.2f} {spread(seconds, '{:.2f}')} "
                         f"{median([run.cpu for run in rows[row]]):.2f}")
        print(f"{name:<18}" + "".join(f"{cell:>24}" for cell in cells)
              + f"{median(rows['stored']) / MIB:>12.1f}")


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0], rounds=5)
    harness.add_tree_options(options)
    args = harness.parse(options)
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")
    work = harness.Work(args.dir, "peers")
    print(f"{harness.machine()}; {args.rounds} rounds; " + ", ".join(
        [harness.output([name, "version" if name == "restic" else "--version"]).split("\n")[0]
         for name in ("restic", "borg") if shutil.which(name)]))
    for kind in args.kinds:
        measure(args, work, kind)
    print(f"load at the end {os.getloadavg()[0]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
