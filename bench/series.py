#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a series of real trees: space and time of storing, arranging, reading and deleting.

The trees are given in the order of their versions; without any, a tree is edited from version to
version. With --packages, packages (folders of the machine's own) are removed and installed from
one version to the next; with --images the same is done on a disk, an ext4 file system in a file
that is mounted for the changes, and a version is its image. With --mail, folders of mail grow; with
--database, pages of a file change. Consecutive releases of one package are given as trees. Each goes
through `varve store` and `varve arrange`, under the tiered and the original policy, without compression, so that the bytes
compare with those of an exact index over the same chunks. Reads are those of `varve restore`: all
bytes that the process reads from files, from the disk or the page cache, and the number of calls.
"At best" is the size of a version if each different chunk were read exactly once. Times compare
only inside one run.
"""

import json
import os
import random
import shutil
import sys
import time

import harness
from harness import MIB


def reads_so_far():
    """Returns the bytes and calls of this process and its finished children."""
    with open("/proc/self/io", encoding="ascii") as text:
        counters = dict(line.split(": ") for line in text)
    return int(counters["rchar"]), int(counters["syscr"])


def chunk_files(repository):
    """Returns the sizes of the container files, by path."""
    sizes = {}
    for root, _, names in os.walk(os.path.join(repository.path, "series")):
        for name in names:
            if name.endswith((".seg", ".vol")):
                path = os.path.join(root, name)
                sizes[path] = os.path.getsize(path)
    return sizes


def edited_trees(args, work):
    """Versions of one tree: some percent of the bytes change in a tenth of the files."""
    trees = [work.at("tree1")]
    harness.run(["cp", "-a", args.tree, trees[0]])
    for number in range(2, args.versions + 1):
        trees.append(work.at(f"tree{number}"))
        harness.run(["cp", "-a", trees[-2], trees[-1]])
        harness.run([args.varve_gen, "edit", f"--seed={number}", f"--change-rate={args.change}",
                     "--mix=60/20/20", "--files-fraction=0.1", trees[-1]])
    return trees


class Packages:
    """A folder to which packages (folders of this machine) are added and removed."""

    SOURCES = ("/usr/share", "/usr/share/doc", "/usr/lib/python3/dist-packages", "/usr/include",
               "/usr/lib/gcc/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu")
    PACKAGE_BYTES_MAX = 4 << 20

    def __init__(self, args, point):
        self.args, self.random, self.point = args, random.Random(11), point
        self.waiting, self.installed = [], {}
        for parent in self.SOURCES:
            for entry in sorted(os.scandir(parent), key=lambda e: e.name):
                if not entry.is_dir(follow_symlinks=False) or entry.path in self.SOURCES:
                    continue
                size = harness.tree_size(entry.path)[1]
                if 0 < size <= self.PACKAGE_BYTES_MAX:
                    self.waiting.append((entry.path, size))
        self.random.shuffle(self.waiting)
        os.mkdir(self.point)

    def install(self, size):
        """Returns packages of about this many bytes."""
        while size > 0 and self.waiting:
            path, package = self.waiting.pop(0)
            name = path.replace("/", "_")
            harness.run(["cp", "-a", path, os.path.join(self.point, name)])
            self.installed[name] = (path, package)
            size -= package

    def remove(self, size):
        """Removes packages, which may return much later."""
        while size > 0 and self.installed:
            name = self.random.choice(sorted(self.installed))
            shutil.rmtree(os.path.join(self.point, name))
            self.waiting.append(self.installed.pop(name))
            size -= self.waiting[-1][1]

    def change(self):
        turnover = self.args.change * sum(size for _, size in self.installed.values())
        self.remove(turnover)
        self.install(turnover)


def package_trees(args, work):
    """Versions of a folder of packages."""
    packages = Packages(args, work.at("packages"))
    trees = []
    for number in range(1, args.versions + 1):
        if trees:
            packages.change()
        else:
            packages.install(args.packages)
        trees.append(work.at(f"tree{number}"))
        harness.run(["cp", "-a", packages.point, trees[-1]])
    return trees


class Disk:
    """A file system in a file, with packages on it."""

    def __init__(self, args, work):
        self.image = work.at("disk")
        self.packages = Packages(args, work.at("disk-mnt"))
        with open(self.image, "wb") as file:
            file.truncate(args.images)
        harness.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0", self.image])

    def mounted(self, change):
        harness.run(["mount", "-o", "loop", self.image, self.packages.point])
        try:
            change()
        finally:
            harness.run(["umount", self.packages.point])


def images(args, work):
    """Versions of a disk that is half full; each is a folder with the image in it."""
    disk = Disk(args, work)
    folders = []
    for number in range(1, args.versions + 1):
        disk.mounted(disk.packages.change if folders
                     else lambda: disk.packages.install(args.images // 2))
        folders.append(work.at(f"images{number}"))
        os.mkdir(folders[-1])
        harness.run(["cp", "--sparse=always", disk.image, os.path.join(folders[-1], "disk")])
    return folders


def mail_spool(args, work):
    """Versions of folders of mail that grow at their end and lose a few mails."""
    rng, folders = random.Random(13), 20
    spool = work.at("spool")
    os.mkdir(spool)
    names = [os.path.join(spool, f"folder{number:02}") for number in range(folders)]

    def deliver(name, size):
        with open(name, "ab") as file:
            while size > 0:
                mail = rng.randbytes(int(rng.expovariate(1 / 20000)) + 500)
                file.write(mail)
                size -= len(mail)

    trees = []
    for number in range(1, args.versions + 1):
        for name in names:
            if number == 1:
                deliver(name, args.mail // folders)
            elif rng.random() < 0.8:
                deliver(name, rng.expovariate(1 / (args.change * args.mail / folders)))
            if number > 1 and rng.random() < 0.3:
                with open(name, "rb") as file:
                    text = file.read()
                at = rng.randrange(len(text))
                with open(name, "wb") as file:
                    file.write(text[:at] + text[at + 50000:])
        trees.append(work.at(f"tree{number}"))
        harness.run(["cp", "-a", spool, trees[-1]])
    return trees


def databases(args, work):
    """Versions of a file some of whose pages change, most of them in a tenth of it."""
    rng, page = random.Random(17), 8192
    pages = args.database // page
    folder = work.at("database")
    os.mkdir(folder)
    path = os.path.join(folder, "table")
    with open(path, "wb") as file:
        for _ in range(pages):
            file.write(rng.randbytes(page))
    trees = []
    for number in range(1, args.versions + 1):
        if number > 1:
            with open(path, "r+b") as file:
                for _ in range(int(args.change * pages)):
                    hot = rng.random() < 0.9
                    file.seek(page * rng.randrange(pages // 10 if hot else pages))
                    file.write(rng.randbytes(page))
        trees.append(work.at(f"tree{number}"))
        harness.run(["cp", "-a", folder, trees[-1]])
    return trees


class Series:
    def __init__(self, args, work, policy):
        self.args, self.work, self.policy = args, work, policy
        self.repository = harness.Repository(args.varve, work.at(policy), "none")
        self.written = self.read = self.backups = self.new = 0
        self.dead = 0.0
        self.names = []

    def varve(self, *words):
        return [json.loads(line) for line in
                harness.output([self.args.varve, *words]).splitlines()]

    def store(self, number, tree):
        path = self.repository.path
        name = f"s/v{number:03}"
        harness.run([self.args.varve, "-q", "store", "--no-arrange", path, name, tree])
        settings = ["--policy", self.policy, *self.args.settings.split()]
        (report,) = self.varve("arrange", "--json", *(settings if not self.names else []), path)
        self.names.append(name)
        stats = self.repository.stats()
        live = stats["active_bytes"] - stats["dead_bytes"]
        if live:
            self.dead = max(self.dead, (stats["dead_bytes"] + stats["departing_bytes"]) / live)
        if number == 1:
            return
        (version,) = self.varve("stat", "--json", path, name)
        # Unused space of a file system in a file is a hole.
        self.backups += (harness.disk_usage(tree) if self.args.images
                         else version["logical_bytes"])
        self.new += version["new_bytes"]
        self.written += report["written_bytes"]
        self.read += report["read_bytes"]

    def report(self, exact, trees):
        stats = self.repository.stats()
        live = stats["active_bytes"] - stats["dead_bytes"] + stats["volume_bytes"]
        files = sum(chunk_files(self.repository).values())
        heads = files - live - stats["dead_bytes"]
        print(f"{self.policy} {self.args.settings}")
        print(f"  a version: arranging writes {self.written / self.backups:.3f} and reads "
              f"{self.read / self.backups:.3f} of a backup, "
              f"{self.written / max(self.new, 1):.2f} bytes a new one")
        print(f"  files {files / exact:.4f} of exact deduplication ({exact / MIB:.1f} MiB): "
              f"1 + stored again {live / exact - 1:.2%} + dead {stats['dead_bytes'] / exact:.2%} "
              f"+ heads and padding {heads / exact:.2%}")
        print(f"  dead and departing at most {self.dead:.1%} of the active set")
        last = len(self.names) - 1
        for which, number in (("newest", last), ("middle", (last + 1) // 2), ("oldest", 0)):
            print(f"  {which}: {self.restore(self.names[number], trees[number])}")

    def restore(self, name, tree):
        out = self.work.at("out")
        before, calls_before = reads_so_far()
        harness.run([self.args.varve, "-q", "restore", self.repository.path, name, out])
        read, calls = reads_so_far()
        size = harness.disk_usage(out) if self.args.images else harness.tree_size(out)[1]
        shutil.rmtree(out)
        (counts,) = harness.output([self.args.exact_dedup, tree]).splitlines()
        unique = json.loads(counts)["unique_bytes"]
        return (f"{(read - before) / size:.3f} bytes read for each one restored, "
                f"{4 * size / (read - before):.2f} MiB restored for 4 MiB read "
                f"(at best {4 * size / unique:.2f}, so {unique / (read - before):.3f} of it), by "
                f"{calls - calls_before} calls, {(calls - calls_before) * 100 * MIB / size:.0f} "
                "for 100 MiB")

    def delete(self, names):
        before = chunk_files(self.repository)
        start = time.monotonic()
        lines = self.varve("rm", "--no-arrange", "--json", self.repository.path, *names)
        seconds = time.monotonic() - start
        after = chunk_files(self.repository)
        moved = sum(max(0, size - before.get(path, 0)) for path, size in after.items())
        (freed,) = [line["freed_bytes"] for line in lines if line["message_type"] == "deletion"]
        print(f"  deleting {len(names)} of {len(self.names)}: {seconds:.2f} s, "
              f"{freed / MIB:.1f} MiB came back, {moved} bytes of chunks moved")
        self.names = [name for name in self.names if name not in names]


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--exact-dedup", help="default: BUILD/bench/exact-dedup")
    options.add_argument("--tree", default="/usr/include", help="what is edited, without TREEs")
    options.add_argument("--versions", type=int, default=12, help="of the edited tree")
    options.add_argument("--change", type=float, default=0.03, help="rate of the edits")
    options.add_argument("--packages", type=harness.parse_bytes, default=0, metavar="BYTES",
                         help="trees of packages of so many bytes, instead of an edited tree")
    options.add_argument("--images", type=harness.parse_bytes, default=0, metavar="BYTES",
                         help="images of a disk of this size, instead of trees")
    options.add_argument("--mail", type=harness.parse_bytes, default=0, metavar="BYTES",
                         help="folders of mail of so many bytes, instead of trees")
    options.add_argument("--database", type=harness.parse_bytes, default=0, metavar="BYTES",
                         help="a database of this size, instead of trees")
    options.add_argument("--settings", default="", metavar="OPTIONS",
                         help="of `varve arrange`, other than the program's own, as one word")
    options.add_argument("--policies", default="tiered,original")
    options.add_argument("trees", nargs="*", metavar="TREE")
    args = harness.parse(options)
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")
    args.exact_dedup = args.exact_dedup or os.path.join(args.build, "bench/exact-dedup")

    work = harness.Work(args.dir, "series")
    kinds = {"images": images, "packages": package_trees, "mail": mail_spool,
             "database": databases}
    chosen = [make for name, make in kinds.items() if getattr(args, name)]
    if bool(args.trees) + len(chosen) > 1:
        options.error("TREEs and --" + ", --".join(kinds) + " exclude each other")
    make = chosen[0] if chosen else edited_trees
    trees = args.trees or make(args, work)
    counts = harness.output([args.exact_dedup, *trees]).splitlines()
    exact = json.loads(counts[-1])["unique_bytes"]
    print(f"{harness.machine()}; {len(trees)} versions, "
          f"{sum(json.loads(line)['bytes'] for line in counts) / MIB:.1f} MiB")
    for policy in args.policies.split(","):
        series = Series(args, work, policy)
        for number, tree in enumerate(trees, 1):
            series.store(number, tree)
        series.report(exact, trees)
        series.delete([series.names[len(series.names) // 2]])
        series.delete(series.names[1::4])
        series.delete(series.names[::2])
        harness.run([args.varve, "-q", "check", "--read-data", series.repository.path])
        series.repository.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
