#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates many machines that back up into one bucket once a day, from the counts that
`bench/bucket.py --json FILE daily` measured.

Each machine begins at a random second of the window, and makes the requests of one daily version
and of the deletion of one version. A request for a data object takes the time of its bytes on the
machine's line, another one a round trip. The simulation counts the requests that begin in each
second of a day. Data objects are scaled from the measured new bytes to --new-bytes: objects of
--object-bytes replace the measured ones. Prices are options.
"""

import argparse
import json
import random
import sys

import harness

MIB, GIB = harness.MIB, 1 << 30
DAY_S = 86400
DATA = ("seg", "vol")
CHANGES = ("put", "post", "copy", "list")


def split(counts):
    """Returns (requests for data, other requests, bytes up) of a measured row."""
    data = {name: row for name, row in counts.items() if name.split()[-1] in DATA}
    other = {name: row[0] for name, row in counts.items() if name not in data}
    return data, other, sum(row[1] for row in counts.values())


class Day:
    """The requests of one machine in a day."""

    def __init__(self, args, measured):
        _, _, live, versions, _ = measured["stored"]
        first = split(measured["first version"])[2]
        version, deletion = measured["daily version"], measured[args.deletion]
        # Nothing was deleted, so that what all versions have is the first one and the new bytes.
        self.new_measured = (live - first) / (versions - 1)
        data, self.other, up = split(version)
        self.up_per_new = up / self.new_measured
        written = sum(row[1] for row in data.values()) / self.new_measured * args.new_bytes
        objects = sum(row[0] for row in data.values() if row[1])
        # A data object is full, or one of the measured number of short ones of a version.
        self.data_puts = max(objects, written / args.object_bytes)
        self.data_bytes = written
        _, removal, _ = split(deletion)
        for name, requests in removal.items():
            self.other[name] = self.other.get(name, 0) + requests
        removed = sum(row[0] for name, row in deletion.items() if name.startswith("delete"))
        self.removals = removed

    def requests(self):
        return self.data_puts + sum(self.other.values())

    def billed(self):
        """Returns (requests billed as changes, requests billed as reads) of a day."""
        changes = self.data_puts + sum(value for name, value in self.other.items()
                                       if name.split()[0] in CHANGES)
        reads = sum(value for name, value in self.other.items()
                    if name.split()[0] in ("get", "head"))
        return changes, reads


def simulate(args, day, window_s):
    """Returns the requests of each second of a day."""
    seconds = [0] * DAY_S
    source = random.Random(args.seed)
    other = sum(day.other.values())
    transfer_s = day.data_bytes / args.line_bytes
    for _ in range(args.machines):
        at = source.random() * window_s
        for _ in range(round(other + source.random() - 0.5)):
            at += args.round_trip_s
            seconds[int(at) % DAY_S] += 1
        puts = max(round(day.data_puts + source.random() - 0.5), 0)
        for _ in range(puts):
            at += transfer_s / puts
            seconds[int(at) % DAY_S] += 1
    return seconds


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    options.add_argument("counts", help="the file of bench/bucket.py --json")
    options.add_argument("--machines", type=int, default=100_000)
    options.add_argument("--new-bytes", type=harness.parse_bytes, default=2 * GIB,
                         help="raw bytes that change a day (default 2G)")
    options.add_argument("--machine-bytes", type=harness.parse_bytes, default=100 * GIB)
    options.add_argument("--kept", type=int, default=100, help="versions (default 100)")
    options.add_argument("--object-bytes", type=harness.parse_bytes, default=48 * MIB,
                         help="mean length of a data object (default 48M)")
    options.add_argument("--line-bytes", type=harness.parse_bytes, default=10 * MIB,
                         help="bytes a second of a machine's line (default 10M)")
    options.add_argument("--round-trip-s", type=float, default=0.05)
    options.add_argument("--hours", type=int, nargs="+", default=[24, 8, 1],
                         help="windows in which the machines begin (default 24 8 1)")
    options.add_argument("--deletion", default="deletion of the oldest (FIFO)",
                         help="the measured row of a deletion")
    options.add_argument("--price-change", type=float, default=5.0, help="$ for 10^6 PUT or LIST")
    options.add_argument("--price-read", type=float, default=0.4, help="$ for 10^6 GET")
    options.add_argument("--price-gib", type=float, default=0.023, help="$ for a GiB and month")
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()
    with open(args.counts, encoding="utf-8") as file:
        measured = json.load(file)["daily"]
    day = Day(args, measured)
    requests = day.requests()
    changes, reads = day.billed()
    print(f"measured: {day.new_measured / MIB:.2f} MiB new a version, "
          f"{day.up_per_new:.2f} bytes up for each new byte")
    print(f"a machine and day: {requests:.1f} requests ({day.data_puts:.1f} for data), "
          f"{day.data_bytes / GIB:.2f} GiB up, "
          f"${(changes * args.price_change + reads * args.price_read) / 1e6:.6f}")
    for hours in args.hours:
        seconds = sorted(simulate(args, day, hours * 3600))
        total = sum(seconds)
        print(f"{args.machines} machines that begin within {hours} h: {total / DAY_S:.0f} requests/s "
              f"on average of the day, {seconds[int(DAY_S * 0.99)]} in the 99th percentile of the "
              f"seconds, {seconds[-1]} at most")
    stored = args.machine_bytes + args.new_bytes * (args.kept - 1)
    objects = stored / args.object_bytes
    small = sum(row[0] for name, row in measured["daily version"].items()
                if name.startswith("put") and name.split()[-1] not in DATA)
    heads = args.kept * small
    print(f"a machine keeps {stored / GIB:.0f} GiB in {objects:.0f} data objects and about "
          f"{heads:.0f} small ones")
    print(f"all: {(objects + heads) * args.machines:.3g} objects, "
          f"{stored * args.machines / (1 << 50):.2f} PiB, "
          f"${stored * args.machines / GIB * args.price_gib:,.0f} a month for storage, "
          f"${30 * args.machines * (changes * args.price_change + reads * args.price_read) / 1e6:,.0f}"
          f" for requests")
    print(f"a list of all of a machine's objects takes {max(1, (objects + heads) / 1000):.0f} "
          f"requests; one of the heads after a known one takes 1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
