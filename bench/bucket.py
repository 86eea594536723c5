#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures repositories in an object store, beside restic with the same store.

A proxy between the clients and the store adds a round trip to each request and to each connection,
and counts requests and bytes. The store and its credentials are those of the environment
(AWS_ENDPOINT_URL, which must be http://, AWS_ACCESS_KEY_ID and so on). Parts: `ingest`, `read`,
`daily` and `readers`. Needs root for mounts. Run it by `unshare -m --propagation private` on a busy
machine: a mount namespace that is made meanwhile keeps a copy of a mount, whose daemon then stays.
"""

import argparse
import concurrent.futures
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time

import harness
import s3_side
from harness import MIB

PASSPHRASE = "k" * 64
# Files that changed later than 2 seconds before a store are read again by the next one.
SETTLED_S = 3
KINDS = ("put", "get", "list", "head", "delete", "copy", "post")


class Varve:
    name = "varve"

    def __init__(self, bench, label):
        self.bench, self.prefix = bench, f"{bench.prefix}/varve-{label}"
        self.place = f"s3://{bench.args.bucket}/{self.prefix}"
        self.path = bench.work.at(f"varve-{label}")
        self.env = {"AWS_ENDPOINT_URL": bench.proxy.endpoint()}
        self.versions = self.attached = 0

    def init(self):
        # A long command line option list would hide what differs: all else is the default.
        return self.run("init", self.place, f"--local={self.path}")

    def run(self, *arguments, env=None):
        return harness.run([self.bench.args.varve, "-q", *arguments],
                           env={**self.env, **(env or {})})

    def backup(self, tree):
        self.versions += 1
        return self.run("store", self.path, f"s/v{self.versions:03}", tree)

    def attach(self, label="reader", env=None):
        # Each is a new folder. Nothing is removed between measurements: see Work.target().
        self.attached += 1
        path = self.bench.work.at(f"{os.path.basename(self.path)}-{label}-{self.attached}")
        return path, self.run("attach", self.place, path, env=env)

    def mount(self, path, env=None):
        point = path + "-mnt"
        return harness.Mount([self.bench.args.varve, "mount", "-f", "-o", "ro", path, point], point,
                             path + ".log", {**self.env, **(env or {})})

    def stored(self):
        objects = self.bench.store.objects(self.prefix + "/")
        return len(objects), sum(objects.values())

    def data_objects(self):
        return {name: size for name, size in self.bench.store.objects(self.prefix + "/").items()
                if "/seg/" in name or "/vol/" in name}


class Restic:
    name = "restic"

    def __init__(self, bench, label):
        self.bench, self.prefix = bench, f"{bench.prefix}/restic-{label}"
        self.env = {"RESTIC_PASSWORD": PASSPHRASE, "RESTIC_REPOSITORY":
                    f"s3:{bench.proxy.endpoint()}/{bench.args.bucket}/{self.prefix}",
                    "RESTIC_CACHE_DIR": bench.work.at(f"restic-cache-{label}")}
        self.caches = 0

    def run(self, *arguments):
        return harness.run(["restic", "-q", *arguments], env=self.env)

    def init(self):
        return self.run("init", "--repository-version", "2")

    def backup(self, tree):
        return self.run("backup", "--compression", "auto", tree)

    def forget_cache(self):
        self.caches += 1
        name = f"{os.path.basename(self.prefix)}-cache-{self.caches}"
        self.env["RESTIC_CACHE_DIR"] = self.bench.work.at(name)

    def snapshots(self):
        listed = json.loads(harness.output(["restic", "-q", "snapshots", "--json"], env=self.env))
        return [one["id"] for one in sorted(listed, key=lambda one: one["time"])]

    def stored(self):
        objects = self.bench.store.objects(self.prefix + "/")
        return len(objects), sum(objects.values())


class Bench:
    def __init__(self, args):
        self.args = args
        self.endpoint = os.environ["AWS_ENDPOINT_URL"]
        self.work = harness.Work(args.dir, "bucket")
        self.source = harness.Work(args.source, "bucket-source") if args.source else self.work
        self.proxy = s3_side.Proxy(self.endpoint)
        self.store = s3_side.Store(self.endpoint, args.bucket)
        self.prefix = f"bench-{os.getpid()}"
        self.results = {}
        os.environ["HOME"] = self.work.path

    def tree(self, name, bytes_, where=None):
        path = (where or self.work).at(name)
        harness.run([self.args.varve_gen, "tree", "--seed=5", f"--bytes={bytes_}",
                     "--file-bytes=lognormal", f"--compressible={self.args.compressible}", path])
        return path

    def edit(self, path, share, seed, files=0.1):
        """Overwrites a share of the bytes, in a share of the files. A seed that chooses no file of
        a small tree is left out."""
        command = [self.args.varve_gen, "edit", f"--change-rate={share}", "--mix=100/0/0",
                   f"--files-fraction={files}", path]
        for more in range(0, 10**9, 10**6):
            if subprocess.run([*command[:2], f"--seed={seed + more}", *command[2:]], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                return

    def programs(self, label):
        made = [Varve(self, label)]
        if shutil.which("restic") and not self.args.without_restic:
            made.append(Restic(self, label))
        return made

    def row(self, part, what, seconds, counts, more=""):
        requests, sent, received = s3_side.total(counts)
        print(f"{what:<44} {seconds:8.2f} s {requests:6} requests {sent / MIB:9.1f} MiB up "
              f"{received / MIB:9.1f} MiB down  {more}", flush=True)
        print(f"{'':<44} {s3_side.text_of(counts)}", flush=True)
        self.results.setdefault(part, {})[what] = {"seconds": seconds, "counts": counts}

    def timed(self, part, what, work, more=""):
        self.proxy.counts()
        start = time.monotonic()
        work()
        seconds = time.monotonic() - start
        self.row(part, what, seconds, self.proxy.counts(), more)
        return seconds


def ingest(bench):
    """Backups of new data, and of data of which 99 % is known, to the end of their upload."""
    for delay in bench.args.delays:
        tree = bench.tree(f"tree-{delay}", bench.args.bytes, bench.source)
        time.sleep(SETTLED_S)
        for program in bench.programs(f"in{delay}"):
            bench.proxy.delay(0)
            program.init()
            bench.proxy.delay(delay)
            bench.timed("ingest", f"{program.name}, {delay} ms: unique",
                        lambda program=program: program.backup(tree))
            program.kept = tree
        bench.edit(tree, 0.01, 7)
        for program in bench.programs(f"in{delay}"):
            program.versions = 1
            bench.timed("ingest", f"{program.name}, {delay} ms: 99 % known",
                        lambda program=program: program.backup(tree))
            objects, size = program.stored()
            print(f"{'':<44} {objects} objects, {size / MIB:.1f} MiB stored", flush=True)
            bench.results["ingest"][f"{program.name}, {delay} ms: stored"] = [objects, size]
            bench.store.remove(program.prefix + "/")
        shutil.rmtree(tree)


def random_reads(root, count):
    """Reads 64 KiB at random places of the files below `root`."""
    files = [(os.path.join(base, name)) for base, _, names in os.walk(root) for name in names]
    sizes = [os.lstat(path).st_size for path in files]
    chosen = random.Random(3).choices(range(len(files)), weights=sizes, k=count)
    places = random.Random(4)
    for at in chosen:
        with open(files[at], "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            os.pread(file.fileno(), 65536, places.randrange(max(sizes[at] - 65536, 1)))


def same(tree, out, check):
    if check:
        harness.run(["diff", "-r", tree, out])


def read_varve(bench, varve, delay, trees, check):
    part, args = "read", bench.args
    for which, version in (("newest", varve.versions), ("oldest", 1)):
        start = time.monotonic()
        path, _ = varve.attach()
        print(f"varve, {delay} ms: attach {time.monotonic() - start:.2f} s "
              f"({s3_side.text_of(bench.proxy.counts())})", flush=True)
        out = bench.work.target()
        bench.timed(part, f"varve, {delay} ms: restore {which}",
                    lambda: varve.run("restore", path, f"s/v{version:03}", out))
        same(trees[which], out, check)
    for what in args.mount_reads:
        path, _ = varve.attach()
        mount = varve.mount(path)
        root, out = os.path.join(mount.point, f"s/v{varve.versions:03}"), bench.work.target()
        work = {"find": lambda: harness.run(["find", root, "-ls"]),
                "cp -a": lambda: harness.run(["cp", "-a", root, out]),
                "random": lambda: random_reads(root, args.random_reads)}[what]
        bench.timed(part, f"varve, {delay} ms: {what} in the mount", work)
        print(f"{'':<44} peak {mount.peak_rss_mib():.0f} MiB", flush=True)
        mount.unmount([args.varve, "umount", mount.point])
        if what == "cp -a":
            same(trees["newest"], out, check)


def read_restic(bench, restic, delay, trees, check):
    part = "read"
    snapshots = restic.snapshots()
    for which, snapshot in (("newest", snapshots[-1]), ("oldest", snapshots[0])):
        restic.forget_cache()
        out = bench.work.target()
        bench.timed(part, f"restic, {delay} ms: restore {which}",
                    lambda: restic.run("restore", snapshot, "--target", out))
        same(trees[which], out + bench.work.at("tree"), check)
    for what in bench.args.mount_reads:
        restic.forget_cache()
        point = bench.work.at("restic-mnt")
        bench.proxy.counts()
        mount = harness.Mount(["restic", "-q", "mount", point], point, bench.work.at("restic.log"),
                              restic.env)
        while not os.path.exists(os.path.join(point, "ids")):
            time.sleep(0.1)
        root = os.path.join(point, "ids", snapshots[-1][:8]) + bench.work.at("tree")
        out = bench.work.target()
        work = {"find": lambda: harness.run(["find", root, "-ls"]),
                "cp -a": lambda: harness.run(["cp", "-a", root, out]),
                "random": lambda: random_reads(root, bench.args.random_reads)}[what]
        bench.timed(part, f"restic, {delay} ms: {what} in the mount", work)
        subprocess.run(["umount", point], check=False)
        mount.process.wait()


def read(bench):
    """Restores and reads of a series of versions, from a fresh machine."""
    tree = bench.tree("tree", bench.args.bytes)
    trees = {"newest": tree, "oldest": bench.work.at("oldest") if bench.args.versions > 1 else tree}
    programs = bench.programs("read")
    bench.proxy.delay(0)
    for program in programs:
        program.init()
    for number in range(bench.args.versions):
        if number == 1:
            harness.run(["cp", "-a", tree, trees["oldest"]])
        if number > 0:
            bench.edit(tree, 0.02, 100 + number)
        for program in programs:
            program.backup(tree)
    harness.run([bench.args.varve, "-q", "arrange", programs[0].path], env=programs[0].env)
    size = harness.tree_size(tree)[1]
    out = bench.work.target()
    newest = f"s/v{programs[0].versions:03}"
    bench.timed("read", "varve: restore newest from the writer's folder",
                lambda: programs[0].run("restore", programs[0].path, newest, out))
    for number, delay in enumerate(bench.args.delays):
        bench.proxy.delay(delay)
        bench.proxy.rate(bench.args.rate)
        objects = programs[0].data_objects()
        seconds, done = bench.store.plain_reads(bench.proxy.endpoint(), objects, 4 * MIB, 32)
        print(f"plain, {delay} ms: 4 MiB ranges, 32 in flight: {done / MIB / seconds:.0f} MiB/s",
              flush=True)
        bench.results.setdefault("read", {})[f"plain, {delay} ms"] = done / seconds
        for program in programs:
            (read_varve if program.name == "varve" else read_restic)(
                bench, program, delay, trees, number == 0)
    print(f"a version has {size / MIB:.1f} MiB")
    for program in programs:
        objects, stored = program.stored()
        print(f"{program.name}: {objects} objects, {stored / MIB:.1f} MiB stored", flush=True)


def daily(bench):
    """Requests and bytes of many versions, of deletions, and of an attach."""
    args = bench.args
    tree = bench.tree("daily", args.daily_bytes)
    varve = Varve(bench, "daily")
    bench.proxy.delay(0)
    varve.init()
    bench.proxy.counts()
    per_version = []
    for number in range(args.daily_versions):
        if number:
            bench.edit(tree, args.daily_change, 500 + number, args.daily_files)
        varve.backup(tree)
        per_version.append(bench.proxy.counts())

    def mean(rows):
        merged = {}
        for counts in rows:
            for name, row in counts.items():
                old = merged.get(name, [0, 0, 0])
                merged[name] = [a + b for a, b in zip(old, row)]
        return {name: [value / max(len(rows), 1) for value in row] for name, row in merged.items()}

    def show(what, rows):
        counts = mean(rows)
        requests, sent, received = s3_side.total(counts)
        print(f"{what:<44} {requests:.1f} requests, {sent / MIB:.2f} MiB up, "
              f"{received / MIB:.2f} MiB down each\n{'':<44} "
              + ", ".join(f"{name} {row[0]:.2f}" for name, row in sorted(counts.items())), flush=True)
        bench.results.setdefault("daily", {})[what] = counts

    show("first version", per_version[:1])
    show("daily version", per_version[1:])
    objects, size = varve.stored()
    live = sum(os.path.getsize(os.path.join(root, name))
               for root, _, names in os.walk(varve.path) for name in names
               if "/active" in root or "/volumes" in root)
    stats = harness.output([args.varve, "stats", "--json", varve.path]).splitlines()[0]
    live -= json.loads(stats)["dead_bytes"]
    print(f"{objects} objects, {size / MIB:.1f} MiB for {args.daily_versions} versions of "
          f"{args.daily_bytes / MIB:.0f} MiB; the local folder has {live / MIB:.1f} MiB of live data: "
          f"the rest is removed after a day, or dead")
    bench.results["daily"]["stored"] = [objects, size, live, args.daily_versions, args.daily_bytes]
    path, _ = varve.attach()
    show("attach", [bench.proxy.counts()])
    rows = []
    kept = args.daily_versions
    for kept in range(args.daily_versions - 1, args.daily_versions - 1 - args.deletions, -1):
        varve.run("prune", "--keep-last", str(kept), varve.path, "s")
        rows.append(bench.proxy.counts())
    show("deletion of the oldest (FIFO)", rows)
    rows = []
    names = [f"s/v{number:03}" for number in range(args.daily_versions, 0, -1)]
    for name in names[2:2 + 2 * args.deletions:2]:
        varve.run("rm", varve.path, name)
        rows.append(bench.proxy.counts())
    show("deletion between others (GFS)", rows)
    objects, size = varve.stored()
    print(f"after the deletions {objects} objects, {size / MIB:.1f} MiB", flush=True)
    bench.results["daily"]["stored after deletions"] = [objects, size]


def readers(bench):
    """Many machines that read, beside one that writes."""
    args = bench.args
    tree = bench.tree("readers", args.bytes)
    varve = Varve(bench, "readers")
    bench.proxy.delay(args.delays[-1])
    varve.init()
    varve.backup(tree)
    ports = [int(bench.proxy.command("port")) for _ in range(args.readers)]
    bench.proxy.counts()

    def one(number):
        env = {"AWS_ENDPOINT_URL": bench.proxy.endpoint(ports[number])}
        path, _ = varve.attach(f"reader{number}", env)
        mount = varve.mount(path, env)
        start = time.monotonic()
        harness.run(["tar", "-cf", bench.work.at(f"{number}.tar"), "-C",
                     os.path.join(mount.point, "s/v001"), "."])
        seconds, peak = time.monotonic() - start, mount.peak_rss_mib()
        anonymous = mount.anonymous_mib()
        mount.unmount([args.varve, "umount", mount.point])
        os.remove(bench.work.at(f"{number}.tar"))
        return seconds, peak, anonymous

    with concurrent.futures.ThreadPoolExecutor(args.readers + 1) as pool:
        running = [pool.submit(one, number) for number in range(args.readers)]
        bench.edit(tree, 0.02, 900)
        bench.timed("readers", "the writer's version beside the readers",
                    lambda: varve.backup(tree))
        for number, done in enumerate(running):
            seconds, peak, anonymous = done.result()
            bench.row("readers", f"reader {number}", seconds, bench.proxy.counts(ports[number]),
                      f"peak {peak:.0f} MiB, anonymous {anonymous:.0f} MiB")


PARTS = {"ingest": ingest, "read": read, "daily": daily, "readers": readers}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--build", default="build", help="Meson build folder with the programs")
    options.add_argument("--varve", help="the varve program (default: BUILD/src/cli/varve)")
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--dir", help="where to work (default: a new folder in /var/tmp)")
    options.add_argument("--source", help="where the source of `ingest` is (default: --dir); from "
                         "tmpfs, Varve reads all files each time")
    options.add_argument("--bucket", default="varve-bench", help="an existing bucket")
    options.add_argument("--bytes", type=harness.parse_bytes, default=64 * MIB,
                         help="of a version (default 64M)")
    options.add_argument("--compressible", type=int, choices=(0, 1), default=0)
    options.add_argument("--delays", type=int, nargs="+", default=[0, 20, 100],
                         help="round trips in milliseconds (default 0 20 100)")
    options.add_argument("--rate", type=float, default=0,
                         help="MiB/s that the store's answers have in `read` (default: no limit). "
                         "It stands for a network between the store and the client.")
    options.add_argument("--versions", type=int, default=20)
    options.add_argument("--random-reads", type=int, default=1000)
    options.add_argument("--mount-reads", nargs="*", choices=("find", "cp -a", "random"),
                         default=("find", "cp -a", "random"), help="what to do in a mount")
    options.add_argument("--daily-versions", type=int, default=100)
    options.add_argument("--daily-bytes", type=harness.parse_bytes, default=32 * MIB)
    options.add_argument("--daily-change", type=float, default=0.02,
                         help="share of the bytes that a day changes (default 0.02)")
    options.add_argument("--daily-files", type=float, default=0.02,
                         help="share of the files that it changes (default 0.02: whole files)")
    options.add_argument("--deletions", type=int, default=10, help="of each kind")
    options.add_argument("--readers", type=int, default=8)
    options.add_argument("--without-restic", action="store_true")
    options.add_argument("--json", help="a file for the counts, for bench/store_scale.py")
    options.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    args = options.parse_args()
    args.varve = os.path.abspath(args.varve or os.path.join(args.build, "src/cli/varve"))
    args.varve_gen = os.path.abspath(args.varve_gen or os.path.join(args.build, "bench/varve-gen"))
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        options.error(f"no part {', '.join(sorted(unknown))}")
    if not os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options.error("AWS_ENDPOINT_URL must be an http:// URL: the proxy reads what passes")
    bench = Bench(args)
    print(harness.machine(), flush=True)
    try:
        for part in args.parts:
            print(f"\n== {part}", flush=True)
            PARTS[part](bench)
    finally:
        bench.store.remove(bench.prefix + "/")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(bench.results, out, indent=1)
    print(f"load at the end {os.getloadavg()[0]:.2f}; the benchmark itself took "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_utime:.0f} s of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
