#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Varve repository without Varve and without its catalog.

usage: varve-read.py REPO ls [SERIES/VERSION [PATH]]
       varve-read.py REPO restore [--guess] SERIES/VERSION DEST [PATH...]

Needs Linux, Python 3.8, the two modules beside it, and the module `zstandard` or the program `zstd`.
It changes nothing in the repository. No other process may write to the repository meanwhile.
`restore` makes DEST or fills an empty folder; each PATH keeps its place below DEST. VERSION may be
`latest`. Series and versions without a usable name appear as #NUMBER.

Verifies all checksums and fingerprints. Restores the readable parts of a damaged file, and leaves the
rest as a hole. A container that only a search behind damage finds may be a piece of a stored file: the
reader uses it only with --guess, and names the files. Exit status: 0 all is well; 1 an error; 2 wrong
usage; 3 something is damaged or was refused, and the messages say what; 10 no repository; 130
interrupted. Memory grows with the id runs of the containers, the nodes of the manifests that a version
needs, and the hard-linked files with names still to come.
"""
import collections
import functools
import os
import stat
import sys
import time

sys.dont_write_bytecode = True
import varve_format as form  # noqa: E402
from varve_format import Damage, need, show  # noqa: E402

problems = 0


def problem(text, counts=True):
    global problems
    problems += counts
    print("varve-read:", show(str(text)), file=sys.stderr)


def fail(status, text):
    problem(text)
    sys.exit(status)


def enter(name, *expected):
    """Changes to a directory, through no link; one that is known must still be the same."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(fd)
    if expected and (status.st_dev, status.st_ino) != expected:
        fail(1, "a directory was moved during the restore")
    os.fchdir(fd)
    os.close(fd)


class Restore:
    """Restores into the working directory. Every name is used inside a directory that the program made
    and entered through no link, and only for new files. So nothing outside can change."""

    def __init__(self, repo, series, wanted, guess):
        self.repo, self.series, self.wanted, self.found, self.guess = repo, series, wanted, set(), guess
        self.top, self.links = os.open(".", os.O_RDONLY), {}

    @functools.lru_cache(None)
    def store(self, number):
        return form.Store(self.repo + ("/series/%08x" % number if number else "/pool"), number, self.guess)

    def tree(self, root):
        here, status = (), os.stat(".")
        stack = [(self.series.entries(root), root, status.st_dev, status.st_ino)]
        while stack:
            entry = next(stack[-1][0], None)
            if entry is None:
                done = stack.pop()[1]
                if stack:
                    enter(b"..", *stack[-1][2:])
                self.attributes(done.name if stack else b".", done, here)
                here = here[:-1]
                continue
            if isinstance(entry, Damage):
                problem("%s: names are lost: %s" % (show(b"/".join(here) or b"."), entry))
                continue
            path = here + (entry.name,)
            if self.wanted and not any(path[:len(w)] == w[:len(path)] for w in self.wanted):
                continue
            self.found.add(path)
            self.found &= self.wanted
            try:
                if entry.kind == stat.S_IFDIR:
                    os.mkdir(entry.name, 0o700)
                    enter(entry.name)
                    here, status = path, os.stat(".")
                    stack.append((self.series.entries(entry), entry, status.st_dev, status.st_ino))
                elif not self.link(entry):
                    self.make(entry, path)
                    self.attributes(entry.name, entry, path)
                    if entry.names > 1:
                        self.links[entry.group] = [path, entry.names - 1]
            except (Damage, OSError, ValueError, OverflowError) as error:
                problem("%s: not restored: %s" % (show(b"/".join(path)), error))

    def link(self, entry):
        """Makes a further name of a file, and returns whether there is one already."""
        known = self.links.get(entry.group) if entry.names > 1 else None
        if not known:
            return False
        known[1] -= 1
        if not known[1]:
            del self.links[entry.group]
        os.link(b"/".join(known[0]), entry.name, src_dir_fd=self.top, follow_symlinks=False)
        return True

    def make(self, entry, path):
        if entry.kind == stat.S_IFLNK:
            return os.symlink(entry.target, entry.name)
        if entry.kind != stat.S_IFREG:
            return os.mknod(entry.name, entry.kind | 0o600, entry.device)
        lost, how = [], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(entry.name, how, 0o600), "wb", buffering=0) as file:
            self.content(file, entry, lost, b"/".join(path))
            file.truncate(entry.size)
        if lost:
            problem("%s: %d bytes are lost and left as a hole, the first at byte %d: %s" % (
                show(b"/".join(path)), sum(end - start for start, end, _ in lost), *lost[0][::2]))

    def content(self, file, entry, lost, path):
        """Writes what can be read of a file, and adds (start, end, reason) of the rest to `lost`."""
        end, runs = 0, entry.runs
        try:
            if runs is None:
                cursor = form.Cursor(self.series.node(entry.node))
                need(cursor.take(1) == b"\3", "node %x is no recipe" % entry.node)
                runs = form.read_runs(cursor, 0, (4 << 20) + entry.size // 256)
            for first, count, size in runs:
                need(size <= entry.size - end, "the recipe is longer than the file")
                at, end = end, end + size
                if count:
                    store = self.store(0 if first >> 63 else self.series.number)
                    store.guessed = False
                    self.run(file, store, first, count, at, end, lost)
                    if store.guessed:
                        problem("%s: may be wrong from byte %d to %d" % (show(path), at, end))
            need(end == entry.size, "the recipe is shorter than the file")
        except Damage as error:
            lost.append((end, entry.size, error))

    def run(self, file, store, first, count, at, end, lost):
        """Writes a run of chunks: forward, and from its end if the length of a chunk is lost."""
        reason = "the chunks are shorter than their run"
        for backward in (False, True):
            while count:
                chunk = first + count - 1 if backward else first
                try:
                    size = store.size(chunk)
                    need(size <= end - at, "the chunks are longer than their run")
                except Damage as error:
                    reason = error
                    break
                place = end - size if backward else at
                try:
                    os.pwrite(file.fileno(), store.chunk(chunk), place)
                except Damage as error:
                    lost.append((place, place + size, error))
                at, end, first = (at, place, first) if backward else (at + size, end, first + 1)
                count -= 1
        if at < end:
            lost.append((at, end, reason))

    def attributes(self, name, entry, path):
        steps = [lambda: os.chown(name, entry.uid, entry.gid, follow_symlinks=False)]
        steps = steps if os.geteuid() == 0 else []
        for key, value in entry.xattrs.items():
            steps.append(functools.partial(os.setxattr, name, key, value, follow_symlinks=False))
        if entry.kind != stat.S_IFLNK:
            steps.append(lambda: os.chmod(name, stat.S_IMODE(entry.mode)))
        times = entry.mtime, entry.mtime
        steps.append(lambda: os.utime(name, ns=times, follow_symlinks=False))
        for step in steps:
            try:
                step()
            except (OSError, ValueError, OverflowError) as error:
                problem("%s: %s" % (show(b"/".join(path) or b"."), error))


def check_superblock(repo):
    """Refuses a repository of another format (§2)."""
    path = repo + "/varve.repo"
    try:
        text = form.read(path, 0, min(form.read(path), 65536))
    except Damage as error:
        if not os.path.isdir(repo + "/series"):
            fail(10, "%s is no Varve repository" % repo)
        return problem(error)
    body, _, check = text.rpartition(b"checksum = ")
    lines = dict(line.split(b" = ", 1) for line in body.split(b"\n") if b" = " in line)
    if check != b"%016x\n" % form.xxh3(body):
        problem(path + " is damaged")
    elif lines.get(b"format_version") != b"1" or lines.get(b"features_required") not in (b"none", b"pool"):
        fail(1, "the format of %s is unknown to this program" % repo)


def by_name(things, name_of):
    """Returns name -> thing; one without a name of its own has #NUMBER."""
    names = {number: name_of(things[number]) or b"" for number in sorted(things)}
    uses = collections.Counter(names.values())
    return {name if form.good_name(name) and uses[name] == 1 else b"#%d" % number: things[number]
            for number, name in names.items()}


def date(seconds):
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "%d s" % seconds


def list_directory(series, root, path):
    for part in path:
        found = [e for e in series.entries(root) if not isinstance(e, Damage) and e.name == part] \
            if root.kind == stat.S_IFDIR else []
        root = found[0] if found else fail(1, "%s: there is no such name" % show(b"/".join(path)))
    for entry in series.entries(root) if root.kind == stat.S_IFDIR else [root]:
        if isinstance(entry, Damage):
            problem("names are lost: %s" % entry)
        else:
            print(stat.filemode(entry.mode), entry.names, entry.uid, entry.gid, entry.size,
                  date(entry.mtime // 10**9), show(entry.name),
                  *["->", show(entry.target)] if entry.target else [])


def main(args):
    guess = args[2:4] == ["restore", "--guess"]
    args = args[:3] + args[4:] if guess else args
    if len(args) < 3 or (args[2], min(len(args), 5)) not in (("ls", 3), ("ls", 4), ("ls", 5), ("restore", 5)):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    repo, command, *rest = os.path.abspath(args[1]), *args[2:]
    check_superblock(repo)
    every = {n: form.Series(n, folder) for n, folder in sorted(form.numbered(repo + "/series").items())}
    every = by_name(every, lambda series: series.name)
    versions = {name: by_name(series.versions, lambda version: version[1]) for name, series in every.items()}
    for name in every if not rest else ():
        for version, (state, _, sealed, entries, size, _) in versions[name].items():
            print("%s/%s: %s, %d entries, %d bytes" % (show(name), show(version), "sealed " + date(
                sealed) if state == 2 else "open", entries, size))
    if not rest:
        return
    name, _, version = os.fsencode(rest[0]).strip(b"/").partition(b"/")
    sealed = {key: value for key, value in versions.get(name, {}).items() if value[0] == 2}
    if version == b"latest" and sealed:
        version = list(sealed)[-1]
    if version not in sealed:
        fail(1, "there is no sealed version %s" % rest[0])
    root, series = sealed[version][5], every[name]
    paths = {tuple(filter(None, os.fsencode(path).split(b"/"))) for path in rest[1 + (command != "ls"):]}
    if command == "ls":
        return list_directory(series, root, paths.pop() if paths else ())
    os.makedirs(rest[1], 0o700, exist_ok=True)
    os.chdir(rest[1])
    if os.listdir("."):
        fail(1, "%s is not empty" % rest[1])
    restore = Restore(repo, series, paths - {()}, guess)
    restore.tree(root)
    for path in restore.wanted - restore.found:
        problem("%s: there is no such name" % show(b"/".join(path)))


if __name__ == "__main__":
    form.report = problem
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        main(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)
    except (Damage, OSError) as error:
        fail(1, error)
    sys.exit(3 if problems else 0)
