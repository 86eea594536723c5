#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures deduplication across series: six hosts whose systems are made of Debian packages.

With --kind, the hosts have data of another kind (pool_kinds.py), which needs no network. Otherwise
all hosts have a common base of packages, and each has a selection of others. Between versions, a
host takes updates (packages of which the archive has two versions), gets and loses packages, and
changes files of its own. The packages are downloaded by name with apt-get and unpacked, so the
network and Debian's archive are needed. Compares what each placement stores with an exact index
over the same chunks of all trees, and counts the reads of a `cat` of all files of the newest
versions through a mount.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys

import harness
import pool_kinds
from harness import MIB

PLACEMENTS = ("lineage", "lineage+pool", "pool")
BASE = """bash coreutils util-linux libc6 libc-bin dpkg apt perl-base tar gzip sed grep findutils
    openssl libssl3 ca-certificates curl libcurl4 systemd libsystemd0 udev login passwd mount
    openssh-client openssh-server vim-common vim-runtime less man-db locales tzdata python3-minimal
    libpython3.11-stdlib libpython3.11-minimal rsync git git-man perl perl-modules-5.36
    libperl5.36""".split()
OTHERS = """nginx-common nginx apache2-bin postgresql-15 postgresql-client-15 mariadb-server-core
    redis-server php8.2-cli php8.2-common ruby3.1 libruby3.1 nodejs libnode108 golang-1.19-src
    samba-libs samba-common bind9 bind9-libs dovecot-core exim4-daemon-light postfix cups-daemon
    emacs-common imagemagick-6.q16 libmagickcore-6.q16-6 ffmpeg libavcodec59 qemu-utils
    qemu-system-data docker.io containerd runc gdb binutils cmake cmake-data""".split()


def versions_of(name):
    """Returns the versions of a package in the archive, oldest first, at most two."""
    lines = harness.output(["apt-cache", "madison", name]).splitlines()
    versions = []
    for line in lines:
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and "Sources" not in fields[2] and fields[1] not in versions:
            versions.append(fields[1])
    return [versions[-1], versions[0]] if len(versions) > 1 else versions


def fetch(folder, name, version):
    """Downloads and unpacks a package. Returns its folder, or None if the archive has it not."""
    target = os.path.join(folder, re.sub(r"[^A-Za-z0-9.+-]", "_", f"{name}={version}"))
    if os.path.isdir(target):
        return target
    got = subprocess.run(["apt-get", "-q", "download", f"{name}={version}"], cwd=folder,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    files = [f for f in os.listdir(folder) if f.endswith(".deb") and f.startswith(name + "_")]
    if got.returncode != 0 or len(files) != 1:
        return None
    harness.run(["dpkg-deb", "-x", os.path.join(folder, files[0]), target])
    os.remove(os.path.join(folder, files[0]))
    return target


class Fleet:
    """The packages of each host in each version."""

    def __init__(self, folder, hosts, versions, seed):
        self.rng = random.Random(seed)
        self.folders = {}
        for name in BASE + OTHERS:
            found = [fetch(folder, name, version) for version in versions_of(name)]
            found = [path for path in found if path]
            if found:
                self.folders[name] = found
        self.base = [name for name in BASE if name in self.folders]
        others = [name for name in OTHERS if name in self.folders]
        # A host updates a package in one of the later versions, the same for most hosts.
        self.updated = {name: self.rng.randrange(2, versions + 1) for name in self.folders}
        self.selected = [self.rng.sample(others, len(others) // 2) for _ in range(hosts)]
        self.others = others

    def build(self, host, version, tree):
        """Makes the tree of a host's version."""
        names = self.selected[host]
        if version > 1:
            names.remove(self.rng.choice(names))
            names.append(self.rng.choice([name for name in self.others if name not in names]))
        os.makedirs(os.path.join(tree, "own"))
        for name in self.base + names:
            late = self.rng.random() < 0.2
            old = version < self.updated[name] + late
            packages = self.folders[name]
            harness.run(["cp", "-a", "-l", "--remove-destination",
                         (packages[0] if old else packages[-1]) + "/.", tree])
        own = random.Random(host)  # A log that grows, and a file that always differs.
        with open(os.path.join(tree, "own", "log"), "wb") as log:
            log.write(own.randbytes(200_000 * version))
        with open(os.path.join(tree, "own", "state"), "wb") as state:
            state.write(random.Random(f"{host}.{version}").randbytes(500_000))


def build_packages(args, work):
    packages = args.packages or work.at("packages")
    os.makedirs(packages, exist_ok=True)
    fleet = Fleet(packages, args.hosts, args.versions, args.seed)
    twice = sum(len(found) > 1 for found in fleet.folders.values())
    print(f"{len(fleet.folders)} packages, {twice} of them with an update")
    for version in range(1, args.versions + 1):
        for host in range(args.hosts):
            fleet.build(host, version, work.at("trees", f"host{host}-v{version}"))


def stats_of(args, repository, *words):
    return json.loads(harness.output([args.varve, "stats", "--json", repository,
                                      *words]).splitlines()[0])


def store_all(args, work, placement, trees, exact):
    """Returns the final stats, the promoted bytes, the greatest share of exact after a version that
    was stored without promoted bytes, and the seconds of the stores."""
    repository = work.at("repo-" + placement)
    harness.run([args.varve, "init", "--placement", placement, "--pool-index", args.pool_index, repository])
    seconds, promoted, worst = 0.0, 0, 0.0
    for ((host, version), tree), least in zip(trees, exact):
        name = f"host{host}/v{version}"
        seconds += harness.run([args.varve, "store", repository, name, tree]).seconds
        promoted += stats_of(args, repository, name).get("promoted_bytes", 0)
        stats = stats_of(args, repository)
        worst = max(worst, (stats["chunk_bytes"] - promoted) / least)
    harness.run([args.varve, "check", "--read-data", repository])
    return stats, promoted, worst, seconds


def count_reads(args, work, placement):
    """Returns the requests and the MiB that a cat of each host's newest version reads."""
    repository, point = work.at("repo-" + placement), work.at("mnt")
    mount = harness.Mount([args.varve, "mount", "-f", repository, point], point, work.at("log"))
    for host in range(args.hosts):
        harness.run(["sh", "-c", f"find '{point}/host{host}/v{args.versions}' -type f -print0 | "
                                 "xargs -0 cat > /dev/null"])
    lines = harness.output([args.varve, "stats", "--live", "--json", repository]).splitlines()
    metrics = {line["name"]: line.get("value") for line in map(json.loads, lines)}
    mount.unmount()
    return (metrics["varve_restore_requests_total"],
            metrics["varve_restore_read_bytes_total"] / MIB)


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--exact-dedup", help="default: BUILD/bench/exact-dedup")
    options.add_argument("--kind", default="packages", choices=("packages", *pool_kinds.KINDS))
    options.add_argument("--packages", help="folder that keeps the unpacked packages")
    options.add_argument("--hosts", type=int, default=6)
    options.add_argument("--versions", type=int, default=5)
    options.add_argument("--seed", type=int, default=1, help="for packages")
    options.add_argument("--pool-index", default="exact", help="as for varve init")
    options.add_argument("--placement", action="append", choices=PLACEMENTS,
                         help="measure only this placement; may be given again")
    args = harness.parse(options)
    args.exact_dedup = args.exact_dedup or os.path.join(args.build, "bench/exact-dedup")
    work = harness.Work(args.dir, "pool")
    if args.kind == "packages":
        build_packages(args, work)
    else:
        pool_kinds.KINDS[args.kind](work.at("trees"), args.hosts, args.versions)
    trees = [((host, version), work.at("trees", f"host{host}-v{version}"))
             for version in range(1, args.versions + 1) for host in range(args.hosts)]
    counts = [json.loads(line) for line in
              harness.output([args.exact_dedup, *[tree for _, tree in trees]]).splitlines()]
    logical, exact = sum(one["bytes"] for one in counts), [one["unique_bytes"] for one in counts]
    print(f"{logical / MIB:.0f} MiB in {len(trees)} versions; exact: {exact[-1] / MIB:.1f} MiB")
    # A promoted chunk is stored a second time, until the first copy departs with its versions.
    print(f"\n{'placement':<14}{'chunks MiB':>12}{'of exact':>10}{'promoted MiB':>14}"
          f"{'of exact without':>18}{'worst version':>15}{'on disk MiB':>13}{'store s':>9}"
          f"{'reads':>8}{'read MiB':>10}")
    for placement in args.placement or PLACEMENTS:
        stats, promoted, worst, seconds = store_all(args, work, placement, trees, exact)
        reads, read_mib = count_reads(args, work, placement)
        stored = stats["chunk_bytes"]
        print(f"{placement:<14}{stored / MIB:>12.1f}{stored / exact[-1]:>10.4f}"
              f"{promoted / MIB:>14.1f}{(stored - promoted) / exact[-1]:>18.4f}{worst:>15.4f}"
              f"{stats['container_bytes'] / MIB:>13.1f}{seconds:>9.1f}{reads:>8}{read_mib:>10.1f}",
              flush=True)
    shutil.rmtree(work.at("trees"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
