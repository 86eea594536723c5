# SPDX-License-Identifier: Apache-2.0
"""Helpers that the benchmark scripts share: work folder, mounts with clean-up, and timing."""

import argparse
import atexit
import collections
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROUNDS_MIN = 3
MOUNT_TIMEOUT_S = 30
MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")

Run = collections.namedtuple("Run", "seconds cpu")


def parser(description, rounds=ROUNDS_MIN):
    """Options that every script has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--build", default="build", help="Meson build folder with the programs")
    options.add_argument("--varve", help="the varve program (default: BUILD/src/cli/varve)")
    options.add_argument("--dir", help="where to work (default: a new folder in /var/tmp)")
    options.add_argument("--rounds", type=int, default=rounds,
                         help=f"rounds of each timing, at least {ROUNDS_MIN}")
    return options


def parse(options):
    args = options.parse_args()
    if args.rounds < ROUNDS_MIN:
        options.error(f"--rounds must be at least {ROUNDS_MIN}")
    args.varve = os.path.abspath(args.varve or os.path.join(args.build, "src/cli/varve"))
    if not os.access(args.varve, os.X_OK):
        options.error(f"no program {args.varve}: build it, or give --varve")
    return args


def parse_bytes(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def run(command, quiet=True):
    """Runs a command to its end. Returns wall and CPU seconds. Stops the benchmark if it fails."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed with {process.returncode}: {' '.join(command)}")
    return Run(seconds, usage.ru_utime + usage.ru_stime)


def output(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def mounted(path):
    """Returns True if the path is a mount point. Works for a mount that no longer answers."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        return any(line.split()[4] == path.replace(" ", "\\040") for line in table)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as control:
        control.write("3\n")


def warm(directory):
    """Reads every file, to fill the page cache for the next reader."""
    buffer = bytearray(MIB)
    for root, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(root, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def tree_size(directory):
    """Returns the number of regular files below a directory and their total size. Hard links count
    once."""
    seen, size = set(), 0
    for root, _, names in os.walk(directory):
        for name in names:
            entry = os.lstat(os.path.join(root, name))
            if (entry.st_mode & 0o170000) == 0o100000 and entry.st_ino not in seen:
                seen.add(entry.st_ino)
                size += entry.st_size
    return len(seen), size


def disk_usage(directory):
    """Returns the disk space that the content of the directory takes, in bytes."""
    total = 0
    for root, directories, names in os.walk(directory):
        for name in directories + names:
            total += os.lstat(os.path.join(root, name)).st_blocks * 512
    return total


class Mount:
    """A FUSE daemon in the foreground with its mount point."""

    def __init__(self, command, point, log):
        self.point = point
        os.makedirs(point, exist_ok=True)
        with open(log, "ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        atexit.register(self.abandon)
        deadline = time.monotonic() + MOUNT_TIMEOUT_S
        while not mounted(point):
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(log, encoding="utf-8", errors="replace") as text:
                    sys.exit(f"{' '.join(command)} did not mount:\n{text.read()}")
            time.sleep(0.01)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def requests(self):
        """Returns the number of reads of /dev/fuse by the daemon's threads: about one per request."""
        total = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/io", encoding="utf-8") as table:
                total += int(next(line for line in table if line.startswith("syscr")).split()[1])
        return total

    def _memory_mib(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) / 1024
        return 0.0

    def peak_rss_mib(self):
        return self._memory_mib("VmHWM")

    def anonymous_mib(self):
        """Returns the daemon's present memory without pages that the kernel can reclaim, such as
        mapped files."""
        return self._memory_mib("RssAnon")

    def mapped_mib(self):
        """Returns the present size of mapped files: programs, libraries and the catalog."""
        return self._memory_mib("RssFile")

    def unmount(self, command=None):
        """Unmounts and waits until the daemon has ended."""
        run(command or ["umount", self.point])
        if self.process.wait() != 0:
            sys.exit(f"the daemon of {self.point} ended with {self.process.returncode}")
        atexit.unregister(self.abandon)

    def abandon(self):
        """Unmounts after a failure."""
        if mounted(self.point):
            subprocess.run(["umount", "-l", self.point], check=False)
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()


class MemoryWatch:
    """Samples a daemon's memory while the block runs. Yields the peaks, in MiB."""

    EVERY_S = 0.02

    def __init__(self, mount):
        self.mount, self.done = mount, threading.Event()
        self.anonymous = self.mapped = 0.0
        self.watcher = threading.Thread(target=self._watch)

    def _look(self):
        self.anonymous = max(self.anonymous, self.mount.anonymous_mib())
        self.mapped = max(self.mapped, self.mount.mapped_mib())

    def _watch(self):
        while not self.done.wait(self.EVERY_S):
            self._look()

    def __enter__(self):
        self._look()
        self.watcher.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.watcher.join()


class Work:
    """The work folder of the benchmark, removed at the end."""

    def __init__(self, parent, name):
        if parent:
            os.makedirs(parent, exist_ok=True)
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=f"varve-{name}-",
                                                      dir=parent or "/var/tmp"))
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        self.targets = 0

    def at(self, *names):
        return os.path.join(self.path, *names)

    def target(self):
        """Returns a new path for a copy. Copies of many files stay to the end, because ext4
        creates inodes slowly for half a minute after many were removed."""
        self.targets += 1
        return self.at(f"out-{self.targets}")


class Repository:
    """A Varve repository, with the commands that the benchmarks use."""

    def __init__(self, varve, path, compression):
        self.varve, self.path = varve, path
        run([varve, "init", "--compression", compression, path])

    def mount(self, point, *options):
        return Mount([self.varve, "mount", "-f", *options, self.path, point], point,
                     self.path + ".log")

    def umount(self, mount):
        mount.unmount([self.varve, "umount", mount.point])

    def seal(self, mount, version):
        return run([self.varve, "seal", os.path.join(mount.point, version)])

    def stats(self):
        """Returns the totals: the first of the JSON lines."""
        return json.loads(output([self.varve, "stats", self.path, "--json"]).splitlines()[0])

    def remove(self):
        shutil.rmtree(self.path)


def median(values):
    return statistics.median(values)


def spread(values, form="{:.0f}"):
    return f"{form.format(min(values))}–{form.format(max(values))}"


def machine():
    """Returns a line about the machine and its load."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.split(":")[1].strip() for line in info if "model name" in line), "?")
    return (f"{os.cpu_count()} × {model}, Linux {os.uname().release}, "
            f"load {os.getloadavg()[0]:.2f}")
