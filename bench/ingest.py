#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ingest through the mount with a file system that keeps no data.

1. `cp -r` of large files (1 to 8 MiB) into null-fs, into an empty Varve version (every byte
   new) and into a second one (every byte known).
2. `cp -a` of many small files into null-fs and into an empty Varve version.

The three take turns in every round; the source is in the page cache; each round has a new
repository without compression. The ratio is that of the medians of cp's wall time. Sealing is
timed separately, because null-fs has no such step.
"""

import os
import sys

import harness
from harness import MIB, median, spread


class Series:
    """Timings of one kind of copy."""

    def __init__(self, name):
        self.name = name
        self.seconds, self.client_cpu, self.daemon_cpu, self.seal = [], [], [], []

    def copy(self, mount, flags, source, target):
        before = mount.cpu_seconds()
        done = harness.run(["cp", flags, source, target])
        self.seconds.append(done.seconds)
        self.client_cpu.append(done.cpu)
        self.daemon_cpu.append(mount.cpu_seconds() - before)


def null_round(args, work, series, flags, source):
    mount = harness.Mount([args.null_fs, work.at("null")], work.at("null"), work.at("null.log"))
    series.copy(mount, flags, source, work.at("null", "copy"))
    mount.unmount()


def varve_round(args, work, all_series, flags, source, verify):
    """A new repository; each series is one version of the same source. Peak RSS in MiB."""
    repository = harness.Repository(args.varve, work.at("repo"), "none")
    mount = repository.mount(work.at("mnt"))
    os.mkdir(work.at("mnt", "bench"))
    for number, series in enumerate(all_series, 1):
        version = f"bench/v{number}"
        os.mkdir(work.at("mnt", version))
        series.copy(mount, flags, source, work.at("mnt", version, "copy"))
        before = mount.cpu_seconds()
        series.seal.append(repository.seal(mount, version).seconds)
        series.daemon_cpu[-1] += mount.cpu_seconds() - before
    peak = mount.peak_rss_mib()
    if verify:
        for number in range(1, len(all_series) + 1):
            harness.run(["diff", "-r", source, work.at("mnt", f"bench/v{number}", "copy")])
    repository.umount(mount)
    repository.remove()
    os.sync()
    return peak


def measure(args, work, flags, source, duplicate):
    null, fresh, known = Series("null-fs"), Series("varve, unique"), Series("varve, duplicate")
    peaks = []
    for number in range(args.rounds):
        harness.warm(source)
        null_round(args, work, null, flags, source)
        versions = [fresh, known] if duplicate else [fresh]
        peaks.append(varve_round(args, work, versions, flags, source,
                                 verify=number == args.rounds - 1))
    return [null, fresh, known] if duplicate else [null, fresh], max(peaks)


def report(title, all_series, amount, unit, cpu, peak):
    """`cpu`: the unit of the last columns, and the divisor for the CPU seconds of a copy."""
    cpu_unit, cpu_shares = cpu
    print(f"\n{title}")
    print(f"{'':<18}{unit:>9}{'range':>14}{'ratio':>8}{'with seal':>11}"
          f"{'daemon':>9}{'cp':>7}  CPU {cpu_unit}")
    base = median(all_series[0].seconds)
    for series in all_series:
        seconds = median(series.seconds)
        rates = [amount / s for s in series.seconds]
        sealed = ""
        if series.seal:
            total = median([a + b for a, b in zip(series.seconds, series.seal)])
            sealed = f"{base / total:.0%}"
        print(f"{series.name:<18}{amount / seconds:>9.0f}{spread(rates):>14}"
              f"{base / seconds:>8.0%}{sealed:>11}{median(series.daemon_cpu) / cpu_shares:>9.2f}"
              f"{median(series.client_cpu) / cpu_shares:>7.2f}")
    print(f"daemon's peak RSS {peak:.0f} MiB")


def main():
    options = harness.parser(__doc__.split("\n", maxsplit=1)[0], rounds=5)
    options.add_argument("--null-fs", help="default: BUILD/bench/null-fs")
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--bytes", type=harness.parse_bytes, default=1 << 30,
                         help="of the large files (default 1G)")
    options.add_argument("--small-files", type=int, default=20000)
    options.add_argument("--only", choices=["large", "small"])
    args = harness.parse(options)
    args.null_fs = args.null_fs or os.path.join(args.build, "bench/null-fs")
    args.varve_gen = args.varve_gen or os.path.join(args.build, "bench/varve-gen")

    work = harness.Work(args.dir, "ingest")
    print(f"{harness.machine()}; {args.rounds} rounds")
    if args.only != "small":
        harness.run([args.varve_gen, "tree", "--seed=1", f"--bytes={args.bytes}",
                     "--file-bytes=1M:8M", "--compressible=0", work.at("large")])
        os.sync()
        files, size = harness.tree_size(work.at("large"))
        rows, peak = measure(args, work, "-r", work.at("large"), duplicate=True)
        report(f"cp -r of {files} files, {size / MIB:.0f} MiB", rows, size / MIB, "MiB/s",
               ("s/GiB", size / (1 << 30)), peak)
    if args.only != "large":
        harness.run([args.varve_gen, "tree", "--seed=2", f"--bytes={4096 * args.small_files}",
                     "--file-bytes=4096:4096", "--compressible=0", work.at("small")])
        os.sync()
        files, size = harness.tree_size(work.at("small"))
        rows, peak = measure(args, work, "-a", work.at("small"), duplicate=False)
        report(f"cp -a of {files} files of 4 KB", rows, files, "files/s",
               ("ms/file", files / 1000), peak)
    return 0


if __name__ == "__main__":
    sys.exit(main())
