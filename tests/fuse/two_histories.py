#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixes the files of two histories of one repository. A version that is restored with status 0 has one of its two
contents as a whole, before and after a repair. A repair names each version that it drops, and a second one changes
nothing.

usage: two_histories.py FOLDER SEED COUNT ARGUMENTS_OF_INIT..."""
import json
import os
import random
import shutil
import subprocess
import sys

from repository_copy import copy_file, copy_repository

VARVE = os.environ["VARVE"]
FILES = 40
# One chunk each, and all of one length: the containers of both histories then have the same layout.
FILE_BYTES = 1500
# The kinds of files that a copy may have replaced as a whole. Parity is not among them: it fits either data or nothing.
KINDS = {
    "catalog": lambda name: name.startswith("catalog/"),
    "labels": lambda name: name.endswith("/labels"),
    "manifests": lambda name: "/manifests/" in name,
    "data": lambda name: name.startswith("pool/") or "/active/" in name or "/volumes/" in name,
}


def varve(*arguments):
    # As on a machine that has not seen the repository: it cannot notice an older state.
    memory = os.environ["XDG_STATE_HOME"] = os.path.join(sys.argv[1], "memory")
    shutil.rmtree(memory, ignore_errors=True)
    return subprocess.run([VARVE, *arguments], capture_output=True, text=True, errors="replace", check=False)


def must(*arguments):
    done = varve(*arguments)
    if done.returncode != 0:
        sys.exit(f"varve {' '.join(arguments)}: {done.returncode}: {done.stderr}")


def content(folder, others=()):  # returns {path: bytes} of a tree, without the files of other names
    found = {}
    for top, _, names in os.walk(folder):
        for name in set(names).difference(others):
            path = os.path.join(top, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def write_tree(folder, prefix, rand, keep=0):
    for name in sorted(os.listdir(folder))[keep:]:
        os.remove(os.path.join(folder, name))
    for i in range(FILES):
        with open(os.path.join(folder, f"{prefix}{i:02}"), "wb") as file:
            file.write(rand.randbytes(FILE_BYTES))


class Pair:
    """Two repositories with a common first version, and what their versions have."""

    def __init__(self, folder, rand, arguments, settings=()):
        self.folder, self.rand = folder, rand
        self.trees = {}  # version -> its contents, one of each history
        self.a, self.b = folder + "/a", folder + "/b"
        source = folder + "/source"
        os.mkdir(source)
        must("init", *arguments, self.a)
        if settings:
            must("config", self.a, *settings)
        write_tree(source, "both-", rand)
        must("store", self.a, "s/v1", source)
        must("store", self.a, "other/v1", source)
        must("store", self.a, "names/v1", source)
        must("store", self.a, "roots/v1", source)
        must("store", self.a, "more/v1", source)
        for series in ("s", "other", "names", "roots", "more"):
            self.trees[series + "/v1"] = [content(source)]
        self.write_open(self.a, "both-", "s/live.partial")
        copy_repository(self.a, self.b)
        for number, repository in enumerate((self.a, self.b)):
            self.trees.setdefault("s/live", []).append(
                self.write_open(repository, f"{'ab'[number]}-", "s/live.partial", "s/live"))
            if number == 1:  # A number that the first history never gives.
                must("store", repository, "more/v2", source)
                self.trees["more/v2"] = [content(source)]
            self.rename_only(repository, "ab"[number])
            self.other_root(repository, ("x", "y", "z") if number == 0 else ("d/p", "d/q", "d/r", "top"))
            for version, keep in (("s/v2", 20), ("s/v3", 10), ("other/v2", 0)):
                write_tree(source, f"{'ab'[number]}-{version[-1]}-", rand, keep)
                must("store", repository, version, source)
                self.trees.setdefault(version, []).append(content(source))

    # Makes two versions without new chunks. The second one has a directory of the first one.
    def rename_only(self, repository, name):
        tree = self.folder + "/names"
        shutil.rmtree(tree, ignore_errors=True)
        must("restore", repository, "names/v1", tree)
        os.mkdir(tree + "/inner")
        for i in range(3):  # So few that the directory has one page, and both histories have the same number of pages.
            os.rename(f"{tree}/both-{i:02}", f"{tree}/inner/{name}{i:02}")
        for version, last in (("names/v2", "one"), ("names/v3", "two")):
            os.rename(f"{tree}/both-{FILES - 1:02}" if last == "one" else f"{tree}/{name}-one", f"{tree}/{name}-{last}")
            must("store", repository, version, tree)
            self.trees.setdefault(version, []).append(content(tree))

    # The root page of the first history has the number and the size of a page of the second one's directory.
    def other_root(self, repository, names):
        tree = self.folder + "/roots"
        shutil.rmtree(tree, ignore_errors=True)
        for name in names:
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            with open(os.path.join(tree, name), "wb") as file:
                file.write(self.rand.randbytes(FILE_BYTES))
        must("store", "--allow-shrunk", repository, "roots/v2", tree)
        self.trees.setdefault("roots/v2", []).append(content(tree))

    # Adds files to an open version. Both histories go on with it, as after a roll-back of a running machine.
    def write_open(self, repository, prefix, version, sealed=None):
        mnt = self.folder + "/mnt"
        must("mount", repository, mnt)
        version = os.path.join(mnt, version)
        os.makedirs(version, exist_ok=True)
        for i in range(FILES // 2):
            with open(os.path.join(version, f"{prefix}{i:02}"), "wb") as file:
                file.write(self.rand.randbytes(FILE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        found = content(version)
        if sealed:
            os.rename(version, os.path.join(mnt, sealed))
        must("umount", mnt)
        return found

    def mix(self, share):  # makes FOLDER/mix of files of both; `share`: probability of the second one's
        return self.take(lambda name: self.rand.random() < share)

    def take(self, wants):  # makes FOLDER/mix of the first one's files, and of the second one's that are wanted
        mixed = self.folder + "/mix"
        shutil.rmtree(mixed, ignore_errors=True)
        copy_repository(self.a, mixed)
        names = {os.path.relpath(os.path.join(top, name), each)
                 for each in (self.a, self.b) for top, _, all_names in os.walk(each) for name in all_names}
        taken = []
        for name in sorted(names):
            if not wants(name) or name == "lock" or name.endswith("lock.mdb"):
                continue
            target = os.path.join(mixed, name)
            if os.path.exists(target):
                os.remove(target)
            if os.path.exists(os.path.join(self.b, name)):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                copy_file(os.path.join(self.b, name), target)
            taken.append(name)
        return mixed, taken

    # Takes whole kinds of files of the second one, of all series or of one.
    def take_kinds(self, kinds, only=""):
        def wants(name):
            of_series = name.startswith("series/" + only)
            return any(KINDS[kind](name) and (of_series or not only) for kind in kinds)
        return self.take(wants)[0]

    def wrong(self, repository):  # returns what is restored with status 0 and is no whole version
        faults, whole = [], 0
        for version, trees in self.trees.items():
            out = self.folder + "/out"
            shutil.rmtree(out, ignore_errors=True)
            if varve("restore", repository, version, out).returncode != 0:
                continue
            whole += 1
            if content(out) not in trees:
                faults.append(version)
        return faults, whole


def stored_files(repository):  # returns {path: bytes} of what a repair may change
    # Each opening for writing may write the others, and the first labels: encrypted ones with other bytes each time.
    files = content(repository, ("lock", "lock.mdb", "reserve", "settled"))
    if "varve.keys" in files:
        files.update({name: len(data) for name, data in files.items() if name.endswith("/labels")})
    return files


def listed(repository):  # returns {(name, seal)} of the versions; none without a catalog
    done = varve("ls", "--json", repository)
    rows = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return {(f"{row['series']}/{row['version']}", row.get("sealed_at")) for row in rows
            if row["message_type"] == "version"}


def repair(repository, *options):
    """Repairs twice, and returns (the first result, what is wrong with the two)."""
    faults, listed_before, before = [], listed(repository), stored_files(repository)
    first = varve("repair", "--yes", *options, repository)
    after, said = stored_files(repository), first.stdout + first.stderr
    faults += [f"{version} is dropped without a word" for version, _ in sorted(listed_before - listed(repository))
               if version not in said]
    if first.returncode not in (0, 1, 3):
        faults.append("an unknown code")
    if first.returncode == 1 and after != before:
        faults.append(f"a refused repair changed {changed(before, after)}")
    second = varve("repair", "--yes", *options, repository)
    if second.returncode != first.returncode:
        faults.append(f"the second repair ends with {second.returncode}: {second.stdout}{second.stderr}")
    if stored_files(repository) != after:
        faults.append(f"the second repair changed {changed(after, stored_files(repository))}")
    if 0 in (first.returncode, second.returncode):
        checked = varve("check", "--read-data", repository)
        if checked.returncode != 0:
            faults.append(f"a check ends with {checked.returncode}: {checked.stdout}{checked.stderr}")
    return first, [f"{fault}; repair {' '.join(options)} ended with {first.returncode}: {said}" for fault in faults]


def changed(before, after):
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def mixtures(pair, rand, seed, count):  # yields (repository, what it is)
    for number in (2, 3):
        repository, _ = pair.take(lambda name, end=f"00000003/manifests/{number:08x}.man": name.endswith(end))
        os.remove(repository + "/catalog/data.mdb")
        yield repository, f"manifest {number} of versions with other names"
    repository, _ = pair.take(lambda name: "00000004/manifests/" in name or "00000004/active/" in name)
    os.remove(repository + "/catalog/data.mdb")
    yield repository, "manifests and segments of one history, labels of the other"
    for kinds in (("manifests", "data"), ("labels", "manifests", "data"), ("labels",), ("catalog",)):
        yield pair.take_kinds(kinds), f"{kinds} of the other history"
    for kinds in (("labels",), ("labels", "manifests")):
        yield pair.take_kinds(kinds, "00000005"), f"{kinds} of the other history, which has one version more"
    for turn in range(count // 3):
        kinds = [kind for kind in KINDS if rand.random() < 0.5]
        only = rand.choice(("", "00000001", "00000003"))
        repository = pair.take_kinds(kinds, only)
        yield repository, f"kinds {turn} of seed {seed}: {kinds} of {only or 'all series'} of the other history"
    for turn in range(count):
        repository, taken = pair.mix(rand.choice((0.1, 0.3, 0.5, 0.7, 0.9)))
        if rand.random() < 0.6:
            os.remove(repository + "/catalog/data.mdb")
            taken.append("without catalog")
        yield repository, f"mixture {turn} of seed {seed}: the files {taken}"


def main():
    folder, seed, count, *arguments = sys.argv[1:]
    rand = random.Random(int(seed))
    pair = Pair(folder, rand, arguments)
    before = after = refused = 0
    for repository, where in mixtures(pair, rand, seed, int(count)):
        faults, whole = pair.wrong(repository)
        before += whole
        if faults:
            sys.exit(f"{where}: {faults} are restored with wrong contents")
        repaired, faults = repair(repository)
        if "--mixed=skip" in repaired.stderr:
            refused += 1
            repaired, more = repair(repository, "--mixed=skip")
            faults += more
            if repaired.returncode != 3:
                faults.append(f"repair --mixed=skip ends with {repaired.returncode}: {repaired.stderr}")
        if faults:
            sys.exit("\n".join([where, *faults]))
        faults, whole = pair.wrong(repository)
        after += whole
        if faults:
            sys.exit(f"{where}: after a repair ({repaired.returncode}), {faults} are restored with wrong contents")
    print(f"{count} mixtures: {before} versions restored before the repair, {after} after it; {refused} repairs refused")


if __name__ == "__main__":
    main()
