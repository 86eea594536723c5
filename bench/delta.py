#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the setting `delta` saves, and what it costs.

Each FOLDER holds the versions of one history as folders, in the order of their names. Without any, the
histories are an SQLite file that an application changes from night to night, and nightly dumps of it.
Each history is stored and arranged version by version, with and without the setting, and each version
is restored and compared with its source. Departed bytes are those of the volumes, headers included;
all bytes are those of the whole repository, catalog and manifests included. Reads are the bytes that
the restoring process reads from files. Times compare only inside one run.
"""

import filecmp
import hashlib
import os
import random
import shutil
import sqlite3
import sys

import harness
from harness import MIB


def add_nights(folder, nights):
    """Makes two histories: an SQLite file under changes, and its dumps."""
    rng = random.Random(7)
    words = [hashlib.md5(str(i).encode()).hexdigest()[:rng.randint(3, 9)] for i in range(3000)]

    def text(count):
        return " ".join(rng.choice(words) for _ in range(count))

    path = os.path.join(folder, "live.db")
    base = sqlite3.connect(path)
    base.execute("create table user(id integer primary key, name text, mail text, balance real)")
    base.execute("create table post(id integer primary key, user int, title text, body text, score int)")
    base.execute("create index by_user on post(user)")
    for i in range(8000):
        base.execute("insert into user values(?,?,?,?)", (i, text(2), text(1) + "@x.org", rng.random()))
    posts = 16000
    for i in range(posts):
        base.execute("insert into post values(?,?,?,?,?)",
                     (i, rng.randrange(8000), text(5), text(rng.randint(10, 120)), rng.randrange(100)))
    for night in range(nights):
        base.commit()
        for kind in ("database", "dump"):
            os.makedirs(os.path.join(folder, kind, f"v{night:03}"))
        shutil.copy(path, os.path.join(folder, "database", f"v{night:03}", "app.db"))
        with open(os.path.join(folder, "dump", f"v{night:03}", "dump.sql"), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in base.iterdump())
        for _ in range(600):
            base.execute("update post set score=? where id=?", (rng.randrange(100), rng.randrange(posts)))
        for _ in range(150):
            base.execute("update post set body=? where id=?", (text(rng.randint(10, 120)), rng.randrange(posts)))
        for _ in range(300):
            base.execute("insert into post values(?,?,?,?,?)",
                         (posts, rng.randrange(8000), text(5), text(rng.randint(10, 120)), rng.randrange(100)))
            posts += 1
        for _ in range(100):
            base.execute("delete from post where id=?", (rng.randrange(posts),))
    return [os.path.join(folder, kind) for kind in ("database", "dump")]


def bytes_of(repository, ends=""):
    """Returns the bytes of the files whose names end so."""
    return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(repository)
               for name in names if name.endswith(ends) and name != "reserve")


def is_same(a, b):
    """Returns whether two trees have the same names and bytes."""
    compared = filecmp.dircmp(a, b, shallow=False) if sys.version_info >= (3, 13) else filecmp.dircmp(a, b)
    if compared.left_only or compared.right_only or compared.funny_files:
        return False
    files = [name for name in compared.common_files if not os.path.islink(os.path.join(a, name))]
    _, different, failed = filecmp.cmpfiles(a, b, files, shallow=False)
    return not different and not failed and all(
        is_same(os.path.join(a, name), os.path.join(b, name)) for name in compared.common_dirs)


def reads_of(command):
    """Runs a command; returns its time and the bytes that it reads from files."""
    with open("/proc/self/io", encoding="ascii") as text:
        before = int(text.readline().split()[1])
    run = harness.run(command)
    with open("/proc/self/io", encoding="ascii") as text:
        return run, int(text.readline().split()[1]) - before


def measure(args, work, history, delta):
    """Stores a history; returns rows and sums."""
    versions = sorted(entry.path for entry in os.scandir(history) if entry.is_dir())
    repository = work.at(f"repository{delta}")
    varve = args.varve
    harness.run([varve, "init", "-q", f"--compression={args.compression}", repository])
    harness.run([varve, "config", "-q", repository, f"delta={delta}", "guard=off"])
    figures = {"sizes": [], "cpu": 0.0}
    for number, version in enumerate(versions):
        harness.run([varve, "store", "-q", "--no-arrange", repository, f"s/v{number}", version])
        figures["cpu"] += harness.run([varve, "arrange", "-q", repository]).cpu
        figures["sizes"].append((bytes_of(repository), bytes_of(repository, ".vol")))
    harness.run([varve, "check", "-q", "--read-data", repository])
    figures["reads"], figures["times"] = [], []
    for number, version in enumerate(versions):
        target = work.at("restored")
        run, reads = reads_of([varve, "restore", "-q", repository, f"s/v{number}", target])
        if not is_same(version, target):
            sys.exit(f"version {number} of {history} differs")
        shutil.rmtree(target)
        figures["reads"].append(reads)
        figures["times"].append(run.seconds)
    return figures


def report(name, off, on):
    print(f"\n{name}: MiB after each version")
    print(f"{'version':>8} {'all off':>9} {'all on':>9} {'ratio':>6} {'departed off':>13} {'on':>8} {'ratio':>6} "
          f"{'read off':>9} {'on':>8} {'ratio':>6}")
    for number, ((all_off, volumes_off), (all_on, volumes_on)) in enumerate(zip(off["sizes"], on["sizes"])):
        reads = off["reads"][number], on["reads"][number]
        print(f"{number:>8} {all_off / MIB:>9.2f} {all_on / MIB:>9.2f} {all_on / all_off:>6.3f} "
              f"{volumes_off / MIB:>13.2f} {volumes_on / MIB:>8.2f} {volumes_on / max(volumes_off, 1):>6.3f} "
              f"{reads[0] / MIB:>9.2f} {reads[1] / MIB:>8.2f} {reads[1] / reads[0]:>6.3f}")
    print(f"arranging: CPU {off['cpu']:.2f} s, {on['cpu']:.2f} s; oldest restore "
          f"{off['times'][0]:.2f} s, {on['times'][0]:.2f} s; newest {off['times'][-1]:.2f} s, {on['times'][-1]:.2f} s")


def main():
    options = harness.parser(__doc__)
    options.add_argument("folders", metavar="FOLDER", nargs="*")
    options.add_argument("--nights", type=int, default=30, help="versions of the generated histories")
    options.add_argument("--compression", default="zstd:3")
    args = harness.parse(options)
    work = harness.Work(args.dir, "delta")
    folders = args.folders
    if not folders:
        os.mkdir(work.at("nights"))
        folders = add_nights(work.at("nights"), args.nights)
    for folder in folders:
        off = measure(args, work, folder, 0)
        on = measure(args, work, folder, 1)
        report(os.path.basename(os.path.normpath(folder)), off, on)
        for delta in (0, 1):
            shutil.rmtree(work.at(f"repository{delta}"))


if __name__ == "__main__":
    main()
