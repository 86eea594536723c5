#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interrupts a copy of a newer state of a repository over an older one after each of its files.

Whatever the copy has replaced so far: a repair changes nothing, or each version that could be restored before, or from
a catalog that is built from the rest of the folder, can be restored after it, with the same content. One with --mixed=skip names the versions that it drops, and a second one
changes nothing. Once the copy is completed, the newer state is whole.

usage: interrupted_copy.py FOLDER ORDER ARGUMENTS_OF_INIT...
ORDER: sorted, as rsync copies; labels: they are first, then manifests; random: five orders."""

import os
import random
import shutil
import sys

from kept_states import NOTES, files_of, must, tree_of, varve, versions_in
from repository_copy import copy_repository


def make_states(folder, arguments):
    """Returns the paths of an older and a newer state."""
    rand = random.Random(1)
    older, newer, source = (f"{folder}/{name}" for name in ("older", "newer", "source"))
    os.mkdir(source)

    def store(repository, version):
        for name in (version.replace("/", "-"), "changed"):
            with open(f"{source}/{name}", "wb") as file:
                file.write(rand.randbytes(20000))
        must("store", repository, version, source)

    must("init", *arguments, older)
    for version in ("s/v1", "s/v2", "o/v1"):
        store(older, version)
    copy_repository(older, newer)
    store(newer, "s/v3")
    must("rm", newer, "s/v1")
    must("mv", newer, "s/v2", "s/second")
    store(newer, "s/v4")
    must("arrange", "--policy", "original", "--window", "1", newer)
    store(newer, "o/v2")
    return older, newer


def orders(kind, paths):
    if kind == "sorted":
        yield paths
    elif kind == "labels":
        yield sorted(paths, key=lambda path: (not path.endswith("/labels"), not path.endswith(".man"), path[::-1]))
    else:
        for seed in range(5):
            yield random.Random(seed).sample(paths, len(paths))


KNOWN = {}  # The files of a folder -> the trees that restorable() has found in such a folder.


def restorable(repository, out):
    """Returns the trees of the versions that can be restored, in no order. Completed copies have the same files, but for
    the note of the last check: their versions are restored once."""
    state = frozenset(one for one in files_of(repository).items() if one[0] != "checked")
    if state not in KNOWN:
        KNOWN[state] = restored(repository, out)
    return list(KNOWN[state])


def restored(repository, out):
    trees = []
    for name in versions_in(varve("ls", repository).stdout):
        shutil.rmtree(out, ignore_errors=True)
        if varve("restore", repository, name, out).returncode == 0:
            trees.append((name, tree_of(out)))
    return trees


def changed(before, after):
    """Returns the paths of changed files. Labels that are sealed again with the same text have another nonce."""
    paths = {path for path in {*before, *after} if before.get(path) != after.get(path) and path not in NOTES}
    return sorted(path for path in paths if "varve.keys" not in before or not path.endswith("/labels"))


class Copy:
    """A copy of the newer state over the older one."""

    def __init__(self, folder, older, newer):
        self.folder, self.older, self.newer = folder, older, newer
        self.wanted = restorable(newer, folder + "/out")
        self.files = files_of(newer)
        self.results = {}

    def bring(self, mixed, paths):
        for path in paths:
            target = os.path.join(mixed, path)
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            shutil.copy2(os.path.join(self.newer, path), target)

    def present(self, mixed):
        """Returns the versions that a folder still has, by its own catalog or by a new one."""
        rebuilt, out = self.folder + "/rebuilt", self.folder + "/out"
        shutil.rmtree(rebuilt, ignore_errors=True)
        copy_repository(mixed, rebuilt)
        trees = restorable(mixed, out)
        if varve("repair", "--yes", "--rebuild-catalog", rebuilt).returncode in (0, 3):
            trees += [one for one in restorable(rebuilt, out) if one not in trees]
        return trees

    def repair(self, mixed):
        """Returns what is wrong with repairs of a folder."""
        before, arguments, files = self.present(mixed), ["repair", "--yes", mixed], files_of(mixed)
        repaired = varve(*arguments)
        self.results[repaired.returncode] = self.results.get(repaired.returncode, 0) + 1
        said = f"{repaired.returncode}: {repaired.stdout}{repaired.stderr}"
        if repaired.returncode == 1:
            if changed(files, files_of(mixed)):
                return f"a repair that stops changed {changed(files, files_of(mixed))}: {said}"
            arguments.append("--mixed=skip")
            skipped = varve(*arguments)
            said = f"{skipped.returncode}: {skipped.stdout}{skipped.stderr}"
        after = [tree for _, tree in restorable(mixed, self.folder + "/out")]
        lost = [name for name, tree in before if tree not in after and (repaired.returncode != 1 or name not in said)]
        if lost:
            return f"the repair loses {lost}: {said}"
        files = files_of(mixed)
        again = varve(*arguments)
        if changed(files, files_of(mixed)) or again.returncode != int(said[0]):
            return f"{said}, then {again.returncode} {changed(files, files_of(mixed))}: {again.stdout}{again.stderr}"
        return ""

    def interrupt(self, paths, done):
        """Interrupts the copy after some files. Returns what is wrong."""
        mixed, out = self.folder + "/mixed", self.folder + "/out"
        shutil.rmtree(mixed, ignore_errors=True)
        copy_repository(self.older, mixed)
        self.bring(mixed, paths[:done])
        fault = self.repair(mixed)
        if fault:
            return fault
        self.bring(mixed, paths)
        for path in files_of(mixed):
            if path not in self.files:
                os.remove(os.path.join(mixed, path))
        shutil.rmtree(mixed + "/catalog.new", ignore_errors=True)
        checked = varve("check", "--read-data", mixed)
        if checked.returncode != 0 or restorable(mixed, out) != self.wanted:
            return f"the completed copy is not whole: {checked.stdout}{checked.stderr}"
        return ""


def main():
    folder, kind, *arguments = sys.argv[1:]
    older, newer = make_states(folder, arguments)
    before = files_of(older)
    paths = sorted(path for path, digest in files_of(newer).items() if before.get(path) != digest)
    copy = Copy(folder, older, newer)
    for order in orders(kind, paths):
        # Of a random order, some places.
        for done in range(1, len(order), 1 if kind != "random" else 5):
            fault = copy.interrupt(order, done)
            if fault:
                sys.exit(f"after {order[:done]}: {fault}")
    print(f"{kind}: {len(paths)} files; statuses of the repairs: {copy.results}")


if __name__ == "__main__":
    main()
