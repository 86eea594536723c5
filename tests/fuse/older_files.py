#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts files of a repository back to states that they had before, or had in another history of the repository.

A history is a repository and its files after each of several random commands; at one of the commands a second history
parts from the first. Each trial takes the newest files of a history, puts one file or several back to another of their
states, and runs all readers, a store and repairs on copies of that folder. It demands:

  - A version that is restored with status 0 has the content that it had in one of the states.
  - No command crashes or hangs.
  - No version is missing while all commands say that all is well, a repair names each version that it drops, and a
    second repair changes nothing.
  - A file that only spares work, or whose content others have, costs no version, and a repair brings all versions back.

VARVE_TEST_DELTA: volumes have frames with prefixes.

usage: older_files.py FOLDER SEED HISTORIES TRIALS ARGUMENTS_OF_INIT..."""

import collections
import os
import random
import re
import shutil
import sys

from kept_states import NOTES, Broken, History, files_of, is_open, run, tree_of, varve, versions_in

RESCUE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "rescue")
STEPS = 14
# Files that only spare work, or say what was true once.
HINTS = re.compile(r"(settled|checked|scrub)$|.*/(sources-|index-|beside$|parity/)|pool/index")
# Files with stored data, and those that are derived from them.
DATA = re.compile(r"\.(seg|vol)$|index|sources-|parity/")
INDEX = re.compile(r".*/index")
# Files whose content others have.
REDUNDANT = re.compile(r"(varve\.repo|varve\.keys)$|.*/labels$|.*\.man$|.*\.als$|catalog/data\.mdb$")
MIXED = "--mixed=skip"


def status_of(done):
    """The exit code of `varve status` without the concern that the machine's disk is nearly full."""
    concerns = re.findall(r"^(WARNING|CRITICAL) - (.*)$", done.stdout, re.MULTILINE)
    if done.returncode not in (1, 2) or not concerns:
        return done.returncode
    return max((2 if state == "CRITICAL" else 1 for state, text in concerns if "of the disk are free" not in text), default=0)


class Judge:
    """Looks at a folder: what its versions have, and what commands say about it."""

    def __init__(self, history, trees, folder, key):
        self.history, self.trees, self.folder, self.key = history, trees, folder, key
        self.out = folder + "/restored"

    def content(self, name, status, messages, found):
        """Returns what a restore gave: right, older, part or error."""
        if status not in (0, 3):
            return "error"
        known = self.known(name)
        if status == 0:
            if found not in known:
                raise Broken(f"{name} is restored with wrong contents: {differences(found, known)}")
            return "right" if found == self.history.versions.get(name) else "older"
        for tree in known:
            if all(tree.get(path, "") == content or path in messages for path, content in found.items()):
                return "part"
        raise Broken(f"{name} is restored in part, with wrong contents: {messages}: {differences(found, known)}")

    def known(self, name):
        """Returns the trees of all versions that have had a name. A rebuild gives the second of two names a number, and a
        version the name that its series, or another one with its number, has in the other history."""
        if name == "?/?":
            return [tree for trees in self.trees.values() for tree in trees]
        version = re.sub(r"\.\d+$", "", name.split("/")[1])
        return [tree for other, trees in self.trees.items() if other.split("/")[1] == version for tree in trees]

    def restore(self, repository, names):
        results = {}
        for name in sorted(names):
            shutil.rmtree(self.out, ignore_errors=True)
            done = varve("restore", repository, name, self.out)
            results[name] = self.content(name, done.returncode, done.stderr, tree_of(self.out))
            if done.stderr:
                self.said.append(done.stderr)
        return results

    def look(self, repository, more):
        """Runs the readers. Returns names, {version: result}, and the statuses of the commands."""
        self.said = []
        if not more:
            results = self.mount(repository)
            return set(results), results, self.ask(repository)
        listed = varve("ls", repository)
        names = set(versions_in(listed.stdout))
        unknown = [name for name in names if not self.known(name)]
        if unknown:
            raise Broken(f"ls shows {unknown}")
        results = self.restore(repository, {name for name in names | set(self.history.versions) if not is_open(name)})
        self.said.append(listed.stderr)
        return names, results, {"ls": listed.returncode, **self.ask(repository)}

    def ask(self, repository):
        statuses = {}
        for words in ("check", "--read-data"), ("status",):
            done = varve(*words, repository)
            statuses[words[0]] = status_of(done) if words == ("status",) else done.returncode
            self.said.append(done.stdout + done.stderr)
        return statuses

    def rescue(self, repository, names):
        program = [os.path.join(RESCUE, "varve-read.py")]
        if self.key:
            program = [os.path.join(RESCUE, "varve-read-encrypted.py"), "--key-file", self.key]
        results = collections.Counter()
        for name in sorted(names):
            shutil.rmtree(self.out, ignore_errors=True)
            done = run(sys.executable, *program, repository, "restore", name, self.out)
            # The manifest of another history has the content, under whatever name that history gives the version.
            of = "?/?" if "its manifest has another history" in done.stderr else name
            results[self.content(of, done.returncode, done.stderr, tree_of(self.out))] += 1
        return results

    def mount(self, repository):
        """Reads all through a mount. Returns {version: result}, or nothing if it cannot be mounted."""
        mnt, results = self.history.folder + "/mnt", {}
        mounted = varve("mount", "-o", "ro", repository, mnt)
        self.said.append(mounted.stderr)
        if mounted.returncode != 0:
            return results
        try:
            for series in os.listdir(mnt):
                for version in os.listdir(os.path.join(mnt, series)):
                    path = os.path.join(mnt, series, version)
                    if not os.path.islink(path):
                        name = f"{series}/{version}"
                        results[name] = self.mounted(name, *readable(path))
        finally:
            done = varve("umount", mnt)
            if done.returncode != 0:
                raise Broken(f"umount: {done.stderr}")
        return results

    def mounted(self, name, tree, errors):
        if is_open(name) or name + ".partial" == self.history.open:
            for path, content in tree.items():
                if isinstance(content, tuple) and content[0] and content[0] not in self.history.parts[path]:
                    raise Broken(f"{name}/{path} of a mount has wrong bytes")
            return "open"
        if not errors:
            return self.content(name, 0, "", tree)
        for known in self.known(name):
            if all(known.get(path, "") == content for path, content in tree.items()):
                return "part"
        raise Broken(f"{name} in a mount has errors, and wrong contents: {differences(tree, self.known(name))}")


def readable(folder):
    """Returns what of a tree can be read, and the number of errors."""
    errors = []
    tree = tree_of(folder, errors.append)
    return tree, len(errors)


def differences(found, known):
    """Returns the paths that differ from the most similar tree."""
    def paths(tree):
        return sorted(path for path in {*found, *tree} if found.get(path, "") != tree.get(path, ""))
    return min((paths(tree) for tree in known), key=len, default="no such version")


class Trial:
    """One folder with files of several states."""

    def __init__(self, judge, files, changed, folder):
        self.judge, self.files, self.changed, self.folder = judge, files, changed, folder
        self.history = judge.history
        self.sealed = {name for name in self.history.versions if not is_open(name)}
        self.single = len(changed) == 1
        self.harmless = all(HINTS.match(path) for path in changed)
        self.complete = self.harmless or (self.single and REDUNDANT.match(next(iter(changed))))

    def fresh(self, without=()):
        repository = self.folder + "/mixed"
        return self.history.make({path: digest for path, digest in self.files.items() if path not in without}, repository)

    def seal(self, repository):
        """Seals the open version. Its files have contents that they once had."""
        if self.history.open is None or varve("seal", repository, self.history.open).returncode != 0:
            return
        shutil.rmtree(self.judge.out, ignore_errors=True)
        if varve("restore", repository, self.history.open.replace(".partial", ""), self.judge.out).returncode != 0:
            return
        for path, content in tree_of(self.judge.out).items():
            if isinstance(content, tuple) and content[0] and content[0] not in self.history.parts[path]:
                raise Broken(f"{path} of the open version is sealed with wrong bytes")

    def run(self, more):
        repository = self.fresh()
        names, results, statuses = self.judge.look(repository, more)
        self.demand_word(names, results, statuses)
        if more:
            self.judge.rescue(repository, self.sealed)
        if more:
            self.seal(repository)
        self.store(repository, more)
        outcomes = [self.repair(self.fresh(), False)]
        outcomes.append(self.repair(self.fresh({"catalog/data.mdb"}), True))
        return results, outcomes

    def demand_word(self, names, results, statuses):
        good = all(results.get(name) == "right" for name in self.sealed)
        if any(status not in (0, 1, 2, 3) for status in statuses.values()):
            raise Broken(f"statuses {statuses}: {self.judge.said}")
        sound = not any(statuses.values()) or any(INDEX.match(path) for path in self.changed)
        if self.harmless and (not good or not sound):
            raise Broken(f"files that only spare work matter: {results} {statuses} {self.judge.said}")
        if not good and self.has_witness(False) and not any(statuses.values()):
            raise Broken(f"no word about {results}, listed {sorted(names)}: {self.judge.said}")
        if self.complete and not good and "data.mdb" not in str(self.changed):
            raise Broken(f"content that other files have is lost: {results} {statuses} {self.judge.said}")

    def has_witness(self, without_catalog):
        """Returns whether the catalog or all labels name all versions, and no others contradict."""
        if "catalog/data.mdb" not in self.changed and not without_catalog:
            return True
        return not any(path.endswith("/labels") for path in self.changed)

    def store(self, repository, more):
        """Stores a version; nothing else changes. With `more`, the catalog is lost then."""
        source = self.history.source
        done = varve("store", repository, "s/new", source.folder)
        if self.harmless and done.returncode != 0:
            raise Broken(f"store ends with {done.returncode}: {done.stderr}")
        if done.returncode == 0:
            shutil.rmtree(self.judge.out, ignore_errors=True)
            back = varve("restore", repository, "s/new", self.judge.out)
            if back.returncode != 0 or tree_of(self.judge.out) != tree_of(source.folder):
                raise Broken(f"a new version is restored with {back.returncode}: {back.stderr}; store said {done.stderr}")
        self.judge.trees["s/new"] = [tree_of(source.folder)]
        try:
            self.judge.mount(repository)
            if more:
                os.remove(repository + "/catalog/data.mdb")
                varve("repair", "--yes", MIXED, repository)
                self.judge.mount(repository)
        finally:
            del self.judge.trees["s/new"]

    def written(self, before, after):
        """Returns the files that a command wrote. Labels that it seals again with the same text have another nonce. A
        segment or volume that the catalog does not name may go once no other one is missing (O6 of docs/ORDERING.md)."""
        paths = {path for path in {*before, *after} if before.get(path) != after.get(path) and path not in NOTES}
        paths = {path for path in paths if path in after or not re.search(r"\.(seg|vol)$", path)}
        return sorted(path for path in paths if not (self.judge.key and path.endswith("/labels")))

    def repair(self, repository, without_catalog):
        arguments = ["repair", "--yes", repository]
        done = varve(*arguments)
        said = done.stdout + done.stderr
        if MIXED in said:
            arguments[2:2] = [MIXED]
            done = varve(*arguments)
            said += done.stdout + done.stderr
        before = files_of(repository)
        again = varve(*arguments)
        said_again = again.stdout + again.stderr
        after = files_of(repository)
        where = f"repair {'without the catalog ' if without_catalog else ''}({done.returncode}: {said})"
        written = self.written(before, after)
        ends = (done.returncode, again.returncode)
        if written or (ends[0] != ends[1] and ends != (3, 0)):
            raise Broken(f"{where}: a second one ends with {again.returncode} and changes {written}: {said_again}")
        self.judge.said = []
        results = self.judge.mount(repository)
        dropped = sorted(name for name in self.sealed - set(results) if name not in said)
        if dropped and done.returncode != 1 and self.has_witness(without_catalog):
            raise Broken(f"{where} drops {dropped} without a word; left {sorted(results)}")
        if done.returncode == 0:
            check = varve("check", "--read-data", repository)
            if check.returncode != 0 or "part" in results.values() or "error" in results.values():
                raise Broken(f"{where}, then {check.stdout} {results} {self.judge.said}")
        if self.complete and not without_catalog and any(results.get(name) != "right" for name in self.sealed):
            raise Broken(f"{where} does not bring all back: {results}")
        return done.returncode


def put_back(rand, newest, states, paths):
    """Returns the newest files with some paths as in other states, and the state of each path that changed."""
    files, changed = dict(newest), {}
    for path in paths:
        fitting = [number for number, state in states.items() if state.get(path) != newest.get(path)]
        if not fitting:
            continue
        number = rand.choice(fitting)
        files.pop(path, None)
        if path in states[number]:
            files[path] = states[number][path]
        changed[path] = number
    return files, changed


def mixtures(rand, histories, count, cut):
    """Yields (history, files, what changed): one file, small files, and files of one state or of another history.
    Those of `cut`: as a disk leaves them that lost some of the last command's writes to the first history."""
    for turn in range(count):
        if turn % 3 == 2:
            states = {f"cut {number}": state for number, state in enumerate(cut)}
            newest = histories[0].states[-1]
            paths = sorted({path for state in cut for path in [*state, *newest]})
            paths = [path for path in paths if rand.random() < 0.6]
            files, changed = put_back(rand, newest, states, paths)
            if changed:
                yield histories[0], files, changed
            continue
        which = rand.randrange(2)
        newest = histories[which].states[-1]
        states = {f"{which}.{number}": state for number, state in enumerate(histories[which].states)}
        paths = sorted({path for state in states.values() for path in state})
        paths = [path for path in paths if any(state.get(path) != newest.get(path) for state in states.values())]
        if turn % 4 == 0:
            kind = rand.choice(sorted({re.sub(r"\w*\d+", "#", path) for path in paths}))
            paths = [rand.choice([path for path in paths if re.sub(r"\w*\d+", "#", path) == kind])]
        elif turn % 4 == 1:
            paths = [path for path in paths if not DATA.search(path) and rand.random() < 0.4]
        elif turn % 4 == 2:
            number = rand.choice(sorted(states))
            states, share = {number: states[number]}, rand.choice((0.1, 0.3, 0.6, 0.9))
            paths = [path for path in paths if rand.random() < share]
        else:
            states.update({f"other {number}": state for number, state in enumerate(histories[1 - which].states)})
            paths = sorted({path for state in states.values() for path in state})
            paths = rand.sample(paths, rand.randrange(1, len(paths)))
        files, changed = put_back(rand, newest, states, paths)
        if changed:
            yield histories[which], files, changed


def make_histories(folder, rand, arguments):
    history = History(folder, rand, arguments)
    history.do_store([])
    history.keep("store")
    if "VARVE_TEST_DELTA" in os.environ:
        history.join_deaths()
    parts_at, parted = rand.randrange(2, STEPS - 2), None
    for number in range(STEPS):
        if number == parts_at:
            parted = history.part()
        history.step()
    for _ in range(STEPS - parts_at):
        parted.step()
    return history, parted


def try_all(histories, cut, rand, trials, number, place, key, tally):
    """Makes the trials of one seed."""
    trees = histories[0].known
    for turn, (history, files, changed) in enumerate(mixtures(rand, histories, trials, cut)):
        more = rand.random() < 0.25
        if os.environ.get("VARVE_TEST_ONLY", str(turn)) != str(turn):
            continue
        tally["mixtures"] += 1
        try:
            results, outcomes = Trial(Judge(history, trees, place, key), files, changed, place).run(more)
            tally.update(results.values())
            tally[f"repair {outcomes[0]}"] += 1
            tally[f"repair without the catalog {outcomes[1]}"] += 1
        except Broken as error:
            tally["broken"] += 1
            print(f"FAILED: seed {number}, trial {turn}: {changed} of {history.log}: {error}\n", flush=True)
            if "VARVE_TEST_KEEP" in os.environ:
                history.make(files, f"{os.environ['VARVE_TEST_KEEP']}/{number}-{turn}")


def main():
    folder, seed, histories_count, trials, *arguments = sys.argv[1:]
    key = arguments[arguments.index("--key-file") + 1] if "--key-file" in arguments else None
    tally = collections.Counter()
    for number in range(int(seed), int(seed) + int(histories_count)):
        place = f"{folder}/{number}"
        os.mkdir(place)
        rand = random.Random(number)
        histories = make_histories(place, rand, arguments)
        cut = histories[0].cut_short(8)
        try_all(histories, cut, rand, int(trials), number, place, key, tally)
        shutil.rmtree(place)
    print(dict(tally))
    sys.exit(1 if tally["broken"] else 0)


if __name__ == "__main__":
    main()
