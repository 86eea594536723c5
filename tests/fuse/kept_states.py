#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A repository whose files are kept after each of several random commands: the module of older_files.py."""

import collections
import hashlib
import os
import random
import shutil
import stat
import subprocess
import sys

VARVE = os.environ["VARVE"]
COMMAND_S_MAX = 120
# Not part of a state: locks, sockets, and the space for a full disk.
STATELESS = {"lock", "lock.mdb", "reserve", "control.sock"}
# Notes of what was done, which a command may write although it changes nothing else.
NOTES = STATELESS | {"settled", "checked", "scrub"}
DEATHS = 11  # Of which eight are joined, behind a window of one version.
DELTA_FLAG = 8


class Broken(Exception):
    """A promise that was not kept."""


def varve(*arguments):
    # As on a machine that has not seen the repository: it cannot notice an older state.
    memory = os.environ["XDG_STATE_HOME"] = os.path.join(sys.argv[1], "memory")
    shutil.rmtree(memory, ignore_errors=True)
    return run(VARVE, *(["-q"] if arguments[0] != "repair" else []), *arguments)


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              timeout=COMMAND_S_MAX)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"{' '.join(command)} hangs") from error
    if done.returncode < 0 or done.returncode > 128 or "Traceback" in done.stderr:
        raise Broken(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return done


def must(*arguments):
    done = varve(*arguments)
    if done.returncode != 0:
        sys.exit(f"varve {' '.join(arguments)}: {done.returncode}: {done.stderr}")
    return done


def content_of(path):
    """Returns bytes with mode and time, the target of a link, or None for a directory."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(status.st_mode):
        return None
    with open(path, "rb") as file:
        return (file.read(), status.st_mode, status.st_mtime_ns)


def fail(error):
    raise error


def tree_of(folder, on_error=fail):
    """Returns {path: content} of a tree."""
    found = {}
    for top, folders, names in os.walk(folder, onerror=on_error if on_error is not fail else None):
        for name in folders + names:
            path = os.path.join(top, name)
            try:
                found[os.path.relpath(path, folder)] = content_of(path)
            except OSError as error:
                on_error(error)
    return found


def files_of(repository):
    """Returns {path: digest} of the files that are part of a state."""
    found = {}
    for top, _, names in os.walk(repository):
        for name in set(names) - STATELESS:
            with open(os.path.join(top, name), "rb") as file:
                found[os.path.relpath(os.path.join(top, name), repository)] = hashlib.sha256(file.read()).hexdigest()
    return found


def versions_in(listed):
    return [line.split()[0] for line in listed.splitlines() if line and not line.split()[0].endswith("/")]


def versions_of(repository):
    return versions_in(varve("ls", repository).stdout)


def is_open(name):
    return name.endswith(".partial")


def containers_with_prefixes(repository):
    """Returns how many containers of volumes say that a frame has a prefix."""
    found = 0
    for path in files_of(repository):
        if path.endswith(".vol"):
            with open(os.path.join(repository, path), "rb") as file:
                starts = file.read().split(b"CVRV")[1:]
            found += sum(1 for start in starts if len(start) > 4 and start[4] & DELTA_FLAG)
    return found


class Source:
    """A tree that changes at random. Most files have one chunk, all of one length, so that containers are alike."""

    def __init__(self, folder, rand):
        self.folder, self.rand = folder, rand
        os.makedirs(folder + "/sub")
        os.symlink("sub/3", folder + "/link")
        for number in range(6):
            self.write(f"sub/{number}" if number % 2 else str(number), 1500)
        self.write("long", 90_000)

    def write(self, name, length):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(self.rand.randbytes(length))

    def change(self):
        """Changes some files; returns the tree."""
        rand = self.rand
        files = sorted(name for name, content in tree_of(self.folder).items() if isinstance(content, tuple))
        for name in rand.sample(files, 2):
            if name != "long":
                os.remove(os.path.join(self.folder, name))
        for _ in range(3):
            self.write(rand.choice(("", "sub/")) + str(rand.randrange(8)), 1500)
        if rand.random() < 0.5:
            with open(self.folder + "/long", "r+b") as file:
                file.seek(rand.randrange(80_000))
                file.write(rand.randbytes(5000))
        return tree_of(self.folder)


class History:
    """A repository, its states, and what its versions have."""

    def __init__(self, folder, rand, arguments):
        self.folder, self.rand, self.arguments = folder, rand, arguments
        self.repository = folder + "/repository"
        self.states = []  # {path: digest}
        self.versions = {}  # name -> tree, of the newest state
        self.known = collections.defaultdict(list)  # name -> trees that a version of this name has had
        self.parts = collections.defaultdict(set)  # (name, path) -> contents that files of open versions have had
        self.open = None
        self.log = []
        self.count = 0
        self.copied = [0]  # Both histories copy from one repository: they share the number of its versions.
        self.source = Source(folder + "/source", rand)
        self.other = Source(folder + "/other", rand)
        os.mkdir(folder + "/files")
        os.mkdir(folder + "/mnt")
        must("init", *arguments, self.repository)
        self.keep("init")

    def keep(self, what):
        """Keeps the files of the present state."""
        self.states.append(self.keep_files(self.repository))
        self.log.append(what)

    def keep_files(self, repository):
        files = files_of(repository)
        for path, digest in files.items():
            kept = f"{self.folder}/files/{digest}"
            if not os.path.exists(kept):
                shutil.copyfile(os.path.join(repository, path), kept)
        return files

    def join_deaths(self):
        """Stores versions of a file that changes little, so that volumes get frames with prefixes."""
        must("config", self.repository, "delta=1", "window=1")
        path = self.source.folder + "/edited"
        self.source.write("edited", 30_000)
        for _ in range(DEATHS):
            with open(path, "r+b") as file:
                for at in range(500, 30_000, 4000):
                    file.seek(at)
                    file.write(self.rand.randbytes(8))
            name = self.fresh()
            self.store(name, tree_of(self.source.folder), self.source.folder)
        must("arrange", "--policy", "original", "--window", "1", self.repository)
        if containers_with_prefixes(self.repository) == 0:
            sys.exit("no frame has a prefix")
        self.keep("join_deaths")

    def cut_short(self, points):
        """Does one more command, and keeps the files that it leaves if it is killed at some of its writes."""
        sealed = [name for name in self.versions if not is_open(name)]
        name, tree, gone = self.fresh(), self.source.change(), self.rand.choice(sealed)
        words = self.rand.choice((["store", name, self.source.folder], ["rm", gone], ["repair", "--yes", "--rebuild-catalog"],
                                  ["arrange", "--policy", "original", "--window", "1"]))
        at = 1 if words[0] in ("store", "rm") else len(words)
        cut, calls = self.folder + "/cut", self.folder + "/calls"

        def killed_at(call):
            shutil.rmtree(cut, ignore_errors=True)
            shutil.copytree(self.repository, cut, ignore=shutil.ignore_patterns("lock", "lock.mdb"))
            environment = {**os.environ, "LD_PRELOAD": os.environ["VARVE_FAULTY_DISK"], "DISK_BELOW": cut,
                           "DISK_KILLS_AT": str(call), "DISK_CALLS_IN": calls}
            subprocess.run([VARVE, "-q", *words[:at], cut, *words[at:]], capture_output=True, env=environment,
                           check=False, timeout=COMMAND_S_MAX)
            return self.keep_files(cut)

        states = [killed_at(0)]
        writes = os.path.getsize(calls)
        os.remove(calls)
        states += [killed_at(self.rand.randrange(1, writes + 1)) for _ in range(points)]
        done = varve(*words[:at], self.repository, *words[at:])
        if done.returncode not in (0, 1, 3):
            sys.exit(f"{words}: {done.stderr}")
        if words[0] == "store":
            self.set(name, tree)
        elif words[0] == "rm" and done.returncode == 0:
            del self.versions[gone]
        self.keep(" ".join(words))
        return states

    def part(self):
        """Returns a second history that goes on from the present state with other contents."""
        other = History.__new__(History)
        other.__dict__.update(self.__dict__)
        other.repository = self.folder + "/parted"
        other.states, other.log, other.versions = list(self.states), list(self.log), dict(self.versions)
        shutil.copytree(self.repository, other.repository, ignore=shutil.ignore_patterns("reserve", "lock", "lock.mdb"))
        return other

    def step(self):
        names = [name for name in self.versions if name != self.open]
        sealed = [name for name in names if not name.endswith(".partial")]
        choices = ["store"] * 6 + ["store_other"] * 2 + ["arrange", "arrange", "config"]
        if len(sealed) > 1:
            choices += ["rename", "lock", "remove", "remove", "prune", "again", "reopen", "rebuild", "repair", "copy"]
            choices += ["series", "open" if self.open is None else "write_open", "write_open" if self.open else "rename"]
            choices += ["seal"] * 2 if self.open else []
            choices += ["compact"]
        what = self.rand.choice(choices)
        detail = getattr(self, "do_" + what)(sealed)
        self.keep(f"{what} {detail or ''}".strip())

    def store(self, name, tree, folder):
        must("store", self.repository, name, folder)
        self.set(name, tree)
        return name

    def set(self, name, tree):
        self.versions[name] = tree
        self.known[name].append(tree)

    def fresh(self, series="s"):
        self.count += 1
        return f"{series}/v{self.count}"

    def do_store(self, _):
        return self.store(self.fresh(), self.source.change(), self.source.folder)

    def do_store_other(self, _):
        shutil.copy2(self.source.folder + "/long", self.other.folder + "/shared")
        return self.store(self.fresh("o"), self.other.change(), self.other.folder)

    def do_again(self, sealed):
        """Another version gets the name of a removed one."""
        name = self.rand.choice(sealed)
        if not self.try_remove(name):
            return "nothing"
        return self.store(name, self.source.change(), self.source.folder)

    def try_remove(self, name):
        if varve("rm", self.repository, name).returncode != 0:
            return False  # It is locked.
        del self.versions[name]
        return True

    def do_remove(self, sealed):
        name = self.rand.choice(sealed)
        return name if self.try_remove(name) else "nothing"

    def do_rename(self, sealed):
        name = self.rand.choice(sealed)
        new = self.fresh(name.split("/")[0])
        must("mv", self.repository, name, new)
        self.set(new, self.versions.pop(name))
        return f"{name} {new}"

    def do_series(self, sealed):
        series = self.rand.choice(sealed).split("/")[0]
        self.count += 1
        new = f"r{self.count}"
        must("mv", self.repository, series, new)
        for name in [name for name in self.versions if name.startswith(series + "/")]:
            self.set(new + name[len(series):], self.versions.pop(name))
        if self.open and self.open.startswith(series + "/"):
            self.open = new + self.open[len(series):]
        return f"{series} {new}"

    def do_lock(self, sealed):
        name = self.rand.choice(sealed)
        must("lock", "--for", "30d", self.repository, name)
        return name

    def do_prune(self, sealed):
        done = varve("prune", "--keep-last", "3", self.repository)
        if done.returncode not in (0, 3):
            sys.exit(f"prune: {done.stderr}")
        left = versions_of(self.repository)
        self.versions = {name: tree for name, tree in self.versions.items() if name in left}

    def do_arrange(self, _):
        must("arrange", *self.rand.choice((("--policy", "original", "--window", "1"), ("--every-duplicate",), ())),
             self.repository)

    def do_compact(self, _):
        must("arrange", "--compact-catalog", self.repository)

    def do_config(self, _):
        setting = self.rand.choice(("keep-last=9", "window=2", "dead=10"))
        must("config", self.repository, setting)
        return setting

    def do_rebuild(self, _):
        must("repair", "--yes", "--rebuild-catalog", self.repository)

    def do_repair(self, _):
        must("repair", "--yes", self.repository)

    def do_copy(self, sealed):
        """The repository gets the versions of another one."""
        second = self.folder + "/second"
        if not os.path.exists(second):
            must("init", *self.arguments, second)
        self.copied[0] += 1
        name = f"c/w{self.copied[0]}"
        self.other.change()
        must("store", second, name, self.other.folder)
        must("copy", second, self.repository)
        here = versions_of(self.repository)  # A copy that was renamed here has its first name again.
        self.versions = {name: tree for name, tree in self.versions.items() if name in here}
        for name in versions_of(second):
            if name in here and name not in self.versions:
                out = self.folder + "/of-copy"
                shutil.rmtree(out, ignore_errors=True)
                must("restore", second, name, out)
                self.set(name, tree_of(out))
        return name

    def do_reopen(self, sealed):
        """The newest version of a series gets another content."""
        series = self.rand.choice(sealed).split("/")[0]
        if self.open and self.open.startswith(series + "/"):
            return "nothing"
        newest = versions_in(varve("ls", self.repository, series).stdout)[-1]
        newest = newest if "/" in newest else f"{series}/{newest}"
        if varve("reopen", self.repository, newest).returncode != 0:
            return "nothing"
        opened = [name for name in versions_of(self.repository) if name.startswith(series + "/")
                  and name not in self.versions]
        tree = self.source.change()
        must("store", "--seal", self.repository, opened[0] if opened else newest, self.source.folder)
        for name in list(self.versions):
            if name.startswith(series + "/") and name not in versions_of(self.repository):
                del self.versions[name]
        # A store into a reopened version leaves the files that the source does not have.
        out = self.folder + "/reopened"
        shutil.rmtree(out, ignore_errors=True)
        must("restore", self.repository, newest, out)
        found = tree_of(out)
        if any(found.get(path, "") != content for path, content in tree.items()):
            sys.exit(f"{newest} is not what was stored")
        self.set(newest, found)
        return newest

    def do_open(self, _):
        self.open = self.fresh("live") + ".partial"
        self.versions[self.open] = {}
        return self.do_write_open(_)

    def do_write_open(self, _):
        if self.open is None:
            return self.do_open(_)
        mnt = self.folder + "/mnt"
        must("mount", self.repository, mnt)
        try:
            folder = os.path.join(mnt, self.open)
            os.makedirs(folder, exist_ok=True)
            for _ in range(4):
                name = f"file{self.rand.randrange(6)}"
                data = self.rand.randbytes(1500)
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                self.parts[name].add(data)
            self.set(self.open, tree_of(folder))
        finally:
            must("umount", mnt)
        return self.open

    def do_seal(self, _):
        name = self.open[:-len(".partial")]
        must("seal", self.repository, self.open)
        self.set(name, self.versions.pop(self.open))
        self.open = None
        return name

    def make(self, files, folder):
        """Makes a folder with these files."""
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder + "/series", mode=0o700)
        os.makedirs(folder + "/staging", mode=0o700)
        for path, digest in files.items():
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            shutil.copyfile(f"{self.folder}/files/{digest}", target)
        return folder
