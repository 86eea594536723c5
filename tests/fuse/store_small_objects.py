#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: store_small_objects.py plain|encrypted PLACE WORK

Harms each small object of a repository at PLACE in the store whose answers and commands go through
the descriptors 3 and 4. Prints a line for each case, and fails unless
- a harmed object with a whole copy costs nothing: attach and restore succeed, also with --write;
- together with its copy, a lost small file costs no version, and a lost head or catalog object the
  versions from its own on. Without the first catalog object, an attach says what to do;
- the checks and scrubs of both folders name the harmed object, and a repair in the writer's folder ends that.
"""

import filecmp
import os
import shutil
import subprocess
import sys

from repository_copy import copy_repository

VARVE = os.environ["VARVE"]
KIND, PLACE, WORK = sys.argv[1:4]
ANSWERS = os.fdopen(3, "r")
COMMANDS = os.fdopen(4, "w")
VERSIONS = ["one", "two", "three"]
TOP = os.path.join(WORK, KIND)
WRITER, KEPT = os.path.join(TOP, "writer"), os.path.join(TOP, "kept")
READER, OUT = os.path.join(TOP, "reader"), os.path.join(TOP, "restored")
SCOPE = PLACE.removeprefix("s3://varve-test/") + "/"
SMALL = ["other", "varve.repo", "head", "cat"]


def store(*words):
    print(*words, file=COMMANDS, flush=True)
    return ANSWERS.readline().strip()


def varve(*arguments):
    """Runs a command of a machine that remembers nothing."""
    home = os.path.join(TOP, "home")
    shutil.rmtree(home, ignore_errors=True)
    env = dict(os.environ, HOME=home, XDG_CACHE_HOME=home, XDG_STATE_HOME=home)
    if KIND == "encrypted":
        env["VARVE_KEY_FILE"] = os.path.join(WORK, "key")
    run = subprocess.run([VARVE, *arguments], capture_output=True, check=False, env=env, text=True)
    if run.returncode < 0:
        sys.exit(f"FAILED: {' '.join(arguments)} ended with {run.returncode}: {run.stderr}")
    return run


def must(*arguments):
    run = varve(*arguments)
    if run.returncode != 0:
        sys.exit(f"FAILED: {' '.join(arguments)} ended with {run.returncode}: {run.stdout}{run.stderr}")
    return run


def same_tree(ours, theirs):
    compared = filecmp.dircmp(ours, theirs)
    same = not (compared.left_only or compared.right_only or compared.funny_files)
    equal, _, _ = filecmp.cmpfiles(ours, theirs, compared.common_files, shallow=False)
    return same and len(equal) == len(compared.common_files) and all(
        same_tree(os.path.join(ours, name), os.path.join(theirs, name))
        for name in compared.common_dirs)


def restored(folder):
    """Returns the versions that a folder restores; a version with other bytes fails the test."""
    whole = []
    for version in VERSIONS:
        shutil.rmtree(OUT, ignore_errors=True)
        run = varve("-q", "restore", folder, f"s/{version}", OUT)
        if run.returncode == 0:
            if not same_tree(os.path.join(TOP, version), OUT):
                sys.exit(f"FAILED: {version} was restored with other bytes")
            whole.append(version)
    return whole


def attach(*options):
    shutil.rmtree(READER, ignore_errors=True)
    return varve(*options, "attach", *(["--write"] if options else []), PLACE, READER)


def make():
    """Stores the versions. Returns the number of the first version that needs each catalog object."""
    how, needs = [], {}
    os.makedirs(TOP)
    if KIND == "encrypted":
        with open(os.path.join(WORK, "key"), "wb", opener=lambda p, f: os.open(p, f, 0o600)) as key:
            key.write(os.urandom(32))
        how = ["--encrypt"]
    must("-q", "init", *how, PLACE, f"--local={WRITER}")
    for number, version in enumerate(VERSIONS):
        tree = os.path.join(TOP, version)
        os.makedirs(os.path.join(tree, "folder"))
        for name in ["a", f"b{number}"]:
            with open(os.path.join(tree, "folder", name), "wb") as file:
                file.write(os.urandom(30000))
        must("-q", "store", WRITER, f"s/{version}", tree)
        for name in store("names", SCOPE).split():
            needs.setdefault(name.removeprefix(SCOPE), number)
    copy_repository(WRITER, KEPT)
    return needs


def kind_of(name):
    return "varve.repo" if name.endswith("varve.repo") else name.split("/")[-2]


def words(run):
    return " ".join((run.stdout + run.stderr).replace(PLACE, "PLACE").split())


class Case:
    def __init__(self, harm, names, first):
        self.harm, self.names, self.faults = harm, names, []
        self.kind = kind_of(names[0])
        self.has_copy = len(names) == 1 and self.kind != "varve.repo"
        is_lost = len(names) == 2 and self.kind in ("head", "cat")
        self.losses = len(VERSIONS) - first if is_lost else 0
        # Nothing tells a reader that a removed head was there.
        self.is_silent = is_lost and self.kind == "head" and harm == "lose"
        for name in names:
            store(harm, SCOPE + name + "$")

    def expect(self, is_true, what):
        if not is_true:
            self.faults.append(what)

    def read(self):
        attached = attach()
        whole = restored(READER) if attached.returncode == 0 else []
        lost = len(VERSIONS) - len(whole)
        self.expect(lost == self.losses, f"{lost} versions are lost, not {self.losses}")
        if lost and not self.is_silent:
            says = "OLDER" if whole else "varve repair"
            self.expect(says in attached.stderr, "the loss is silent")
        line = f"attach {attached.returncode}, {len(whole)} whole"
        if attached.returncode == 0 and not self.is_silent:
            line += ", " + self.check(READER, "reader")
        if self.harm == "lose" and whole and (self.has_copy or lost):
            accepts = attach("-q", "--accept-older")
            self.expect(accepts.returncode == 0 and restored(READER) == whole,
                        f"taking over fails: {words(accepts)}")
            if lost and not self.is_silent:
                store("undo")
                for name in self.names:
                    store(self.harm, SCOPE + name + "$")
                refused = attach("-q")
                self.expect(refused.returncode != 0 and "--accept-older" in refused.stderr,
                            f"an older state is taken over: {words(refused)}")
        return f"{line}: {words(attached)}"

    def check(self, folder, whose):
        # A scrub checks the store, too.
        run = varve(*(["scrub", "--restart"] if self.harm == "cut" else ["check"]), folder)
        named = all(name in run.stdout for name in self.names)
        if whose == "reader" and self.harm == "lose" and self.names[0].endswith(".copy") and self.kind == "head":
            # An interrupted writer leaves its head without the copy, and adds the copy later.
            self.expect(run.returncode == 0 and "no second copy yet" in run.stderr, words(run))
            return "no damage"
        self.expect(run.returncode == 1 and named, f"the {whose}'s check says {words(run)}")
        return f"{whose}'s check {run.returncode}"

    def repair(self):
        line = self.check(WRITER, "writer")
        varve("-q", "repair", "--yes", WRITER)
        varve("-q", "wait", WRITER)
        after = varve("check", WRITER)
        self.expect(after.returncode == 0, f"the repair leaves {words(after)}")
        attached = attach()
        self.expect(attached.returncode == 0 and not attached.stderr.count("lost") and
                    restored(READER) == VERSIONS, f"after the repair: {words(attached)}")
        return line


def run_case(harm, names, first):
    store("save", SCOPE)
    case = Case(harm, names, first)
    line = case.read()
    store("undo")
    for name in names:
        store(harm, SCOPE + name + "$")
    line = case.repair() + ", " + line
    store("undo")
    shutil.rmtree(WRITER)
    copy_repository(KEPT, WRITER)
    print(f"{harm} {' '.join(name.split('/', 1)[-1] for name in names)}: {line[:300]}")
    for fault in case.faults:
        print(f"  WRONG: {fault}")
    return len(case.faults)


def main():
    needs = make()
    objects = [name.removeprefix(SCOPE) for name in store("names", SCOPE).split()]
    small = [name for name in objects if kind_of(name) in SMALL and not name.endswith(".copy")]
    store("save", SCOPE)
    for name in [name for name in small if kind_of(name) == "other"]:
        store("lose", SCOPE + name + "$")
        if varve("check", WRITER).returncode == 0:
            small.remove(name)  # Labels of an older head, which nothing needs.
        store("undo")
    heads = [name for name in small if kind_of(name) == "head"]
    faults = cases = 0
    for name in small:
        if name in heads[:-1]:
            continue  # Nothing needs an old head.
        for harm in ["rot", "cut", "lose"]:
            copies = [one for one in [name + ".copy"] if one in objects]
            if not copies and not name.endswith("varve.repo"):
                faults += 1
                print(f"{name} has no copy")
            for names in [[name]] + ([[copies[0]], [name, copies[0]]] if copies else []):
                faults += run_case(harm, names, needs[name])
                cases += 1
    print(f"{cases} cases, {faults} faults")
    sys.exit(1 if faults or cases < 50 else 0)


main()
