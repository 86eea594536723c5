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


def run(command, quiet=True, env=None):
    """Runs a command to its end. Returns wall and CPU seconds. Stops the benchmark if it fails.
    `env` has variables beside those of this process."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None,
                               env={**os.environ, **(env or {})})
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed with {process.returncode}: {' '.join(command)}")
    return Run(seconds, usage.ru_utime + usage.ru_stime)


def output(command, env=None):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **(env or {})}).stdout


def mounted(path):
    """Returns True if the path is a mount point. Works for a mount that no longer answers."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        return any(line.split()[4] == path.replace(" ", "\\040") for line in table)


def add_tree_options(options):
    """Adds the options of make_tree()."""
    options.add_argument("--varve-gen", help="default: BUILD/bench/varve-gen")
    options.add_argument("--bytes", type=parse_bytes, default=256 << 20,
                         help="of the image; the tree of sources has half of it (default 256M)")
    options.add_argument("--small-files", type=int, default=20_000)
    options.add_argument("--kinds", nargs="*", default=["small", "source", "image"],
                         choices=["small", "source", "image"])


def make_tree(args, kind, path):
    """Makes a tree of many small files, one like that of sources, or one with an image."""
    form = {"small": [f"--bytes={args.small_files * 4096}", "--file-bytes=500:7692",
                      "--compressible=1"],
            "source": [f"--bytes={args.bytes // 2}", "--file-bytes=lognormal", "--compressible=1"],
            "image": [f"--bytes={args.bytes}", f"--file-bytes={args.bytes}:{args.bytes}",
                      "--compressible=0"]}[kind]
    run([args.varve_gen, "tree", "--seed=5", *form, path])


def change_tree(args, kind, path):
    """Overwrites 2 % of the bytes."""
    share = "1" if kind == "image" else "0.1"
    run([args.varve_gen, "edit", "--seed=6", "--change-rate=0.02", "--mix=100/0/0",
         f"--files-fraction={share}", path])


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

    def __init__(self, command, point, log, env=None):
        self.point = point
        os.makedirs(point, exist_ok=True)
        with open(log, "ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out,
                                            env={**os.environ, **(env or {})})
        atexit.register(self.abandon)
        deadline = time.monotonic() + MOUNT_TIMEOUT_S
        while not mounted(point):
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(log, encoding="utf-8", errors="replace") as text:
                    sys.exit(f"{' '.join(command)} did not mount:\n{text.read()}")
            time.sleep(0.01)

    def cpu_seconds(self):
        """Returns the processor time of all threads, including those that have ended."""
        process_clock = (~self.process.pid << 3) | 2  # As clock_getcpuclockid(3) makes it.
        return time.clock_gettime(process_clock)

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

    env = {}

    def __init__(self, varve, path, compression):
        self.varve, self.path = varve, path
        run([varve, "-q", "init", "--compression", compression, path])

    def mount(self, point, *options):
        return Mount([self.varve, "mount", "-f", *options, self.path, point], point,
                     self.path + ".log", self.env)

    def command(self, name, *arguments):
        """Runs `varve NAME REPO ARGUMENTS`."""
        return run([self.varve, "-q", name, self.path, *arguments], env=self.env)

    def umount(self, mount):
        mount.unmount([self.varve, "umount", mount.point])

    def seal(self, mount, version):
        return run([self.varve, "seal", os.path.join(mount.point, version)])

    def stats(self):
        """Returns the totals: the first of the JSON lines."""
        return json.loads(output([self.varve, "stats", self.path, "--json"], self.env).splitlines()[0])

    def remove(self):
        shutil.rmtree(self.path)


class EncryptedRepository(Repository):
    """An encrypted one; `env` opens it. A key file costs nothing to derive, a passphrase its usual
    cost."""

    def __init__(self, args, path, compression, passphrase=False):
        self.varve, self.path = args.varve, path
        key = path + ".key"
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("k" * 64)
        kind = "passphrase-file" if passphrase else "key-file"
        made = subprocess.run([args.varve, "init", "--encrypt", "--" + kind, key,
                               "--compression", compression, path],
                              check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.env = {"VARVE_PASSPHRASE_FILE" if passphrase else "VARVE_KEY_FILE": key}
        if made.returncode == 0:
            return
        # This release does not make encrypted repositories. A program of the tests does, with a
        # passphrase that costs next to nothing.
        program = os.environ.get("VARVE_INIT_ENCRYPTED") or os.path.join(
            args.build, "tests/fuse/init_encrypted")
        run([program, path, "k" * 64])
        self.env = {"VARVE_PASSPHRASE_FILE": key}


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
