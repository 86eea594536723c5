#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one open version by many processes at once. Each knows the expected result.

usage: parallel.py SECONDS SEED VERSION SECOND-VERSION SEALED-VERSION

Eight processes work in VERSION, each in a private folder with exactly known content, and in shared
folders. There, every outcome is correct that some order of the calls could give. Two work in
SECOND-VERSION, of another series; two read SEALED-VERSION throughout.
"""

import ctypes
import errno
import hashlib
import os
import random
import stat
import struct
import sys
import time
import traceback

WRITERS, SECOND_WRITERS, READERS = 8, 2, 2
BLOCK_BYTES = 4096
RECORD = struct.Struct("<QQ")
NOREPLACE, EXCHANGE = 1, 2
SHARED_ERRORS = {
    "open": {errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EEXIST},
    "rename": {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR,
               errno.EINVAL},
    "link": {errno.ENOENT, errno.EEXIST, errno.EPERM, errno.ENOTDIR},
    "unlink": {errno.ENOENT, errno.EISDIR, errno.ENOTDIR},
    "rmdir": {errno.ENOENT, errno.ENOTEMPTY, errno.ENOTDIR},
    "make": {errno.ENOENT, errno.EEXIST, errno.ENOTDIR},
    "change": {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EPERM,
               errno.EOPNOTSUPP, errno.ENODATA, errno.EINVAL},
}

libc = ctypes.CDLL(None, use_errno=True)


def rename2(old, new, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"{old} to {new}")


class Failure(Exception):
    """The content differs from the expected content."""


def contents(path):
    with open(path, "rb") as file:
        return file.read()


class OwnFolder:
    """Changes a private folder, and knows its content."""

    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng
        os.mkdir(folder)
        self.entries = {}  # Relative name → file. Hard links share one file.
        self.folders = {""}

    def path(self, name):
        return os.path.join(self.folder, name)

    def pick(self):
        return self.rng.choice(sorted(self.entries)) if self.entries else None

    def free_name(self):
        return os.path.join(self.rng.choice(sorted(self.folders)), f"n{self.rng.randrange(40)}")

    def step(self):
        self.rng.choice((
            self.write, self.write, self.write, self.overwrite, self.truncate, self.rename,
            self.rename, self.link, self.symlink, self.unlink, self.mkdir, self.rmdir, self.xattr,
            self.chmod, self.look))()

    def expect(self, wanted, call):
        """Checks that the call ends with this errno; 0 for success."""
        got = 0
        try:
            call()
        except OSError as error:
            got = error.errno
        if got != wanted:
            raise Failure(f"{self.folder}: error {errno.errorcode.get(got, got)} in place of "
                          f"{errno.errorcode.get(wanted, wanted)}")

    def write(self):
        name = self.free_name()
        if name in self.folders:
            self.expect(errno.EISDIR, lambda: os.open(self.path(name), os.O_WRONLY | os.O_CREAT))
            return
        entry = self.entries.get(name)
        if entry is not None and "target" in entry:
            return
        data = self.rng.randbytes(self.rng.choice((0, 10, 3000, 20_000, 150_000)))
        with open(self.path(name), "wb", buffering=0) as file:
            for at in range(0, len(data), 50_000):
                file.write(data[at:at + 50_000])
        if entry is None:
            entry = self.entries[name] = {"mode": 0o644, "xattrs": {}, "names": {name}}
        entry["data"] = bytearray(data)

    def file(self):
        name = self.pick()
        return (name, self.entries[name]) if name and "data" in self.entries[name] else (None, None)

    def overwrite(self):
        name, entry = self.file()
        if name is None:
            return
        at = self.rng.randrange(len(entry["data"]) + 5000)
        data = self.rng.randbytes(self.rng.choice((1, 100, 9000)))
        fd = os.open(self.path(name), self.rng.choice((os.O_WRONLY, os.O_RDWR)))
        os.pwrite(fd, data, at)
        os.close(fd)
        entry["data"].extend(bytes(max(0, at - len(entry["data"]))))
        entry["data"][at:at + len(data)] = data

    def truncate(self):
        name, entry = self.file()
        if name is None:
            return
        size = self.rng.choice((0, 5, len(entry["data"]) // 2, len(entry["data"]) + 777))
        os.truncate(self.path(name), size)
        del entry["data"][size:]
        entry["data"].extend(bytes(size - len(entry["data"])))

    def forget(self, name):
        entry = self.entries.pop(name, None)
        if entry is not None:
            entry["names"].discard(name)

    def take(self, entry, name):
        self.entries[name] = entry
        entry["names"].add(name)

    def rename(self):
        old, new = self.pick(), self.free_name()
        if old is None or new in self.folders:
            return
        flags = self.rng.choice((0, 0, NOREPLACE, EXCHANGE))
        mine, other = self.entries[old], self.entries.get(new)
        if flags == NOREPLACE and other is not None:
            self.expect(errno.EEXIST, lambda: rename2(self.path(old), self.path(new), flags))
        elif flags == EXCHANGE and other is None:
            self.expect(errno.ENOENT, lambda: rename2(self.path(old), self.path(new), flags))
        else:
            rename2(self.path(old), self.path(new), flags)
            if mine is other:
                return
            self.forget(old)
            self.forget(new)
            self.take(mine, new)
            if flags == EXCHANGE:
                self.take(other, old)

    def link(self):
        old, new = self.pick(), self.free_name()
        if old is None:
            return
        taken = new in self.entries or new in self.folders
        self.expect(errno.EEXIST if taken else 0, lambda: os.link(
            self.path(old), self.path(new), follow_symlinks=False))
        if not taken:
            self.take(self.entries[old], new)

    def symlink(self):
        name = self.free_name()
        taken = name in self.entries or name in self.folders
        target = "t" * self.rng.randrange(1, 200)
        self.expect(errno.EEXIST if taken else 0, lambda: os.symlink(target, self.path(name)))
        if not taken:
            self.entries[name] = {"target": target, "names": {name}}

    def unlink(self):
        if self.entries:
            name = self.pick()
            os.unlink(self.path(name))
            self.forget(name)

    def mkdir(self):
        name = self.free_name()
        taken = name in self.entries or name in self.folders
        if name.count("/") > 2:
            return
        self.expect(errno.EEXIST if taken else 0, lambda: os.mkdir(self.path(name)))
        if not taken:
            self.folders.add(name)

    def rmdir(self):
        name = self.rng.choice(sorted(self.folders))
        if name == "":
            return
        full = any(n.startswith(name + "/") for n in list(self.entries) + list(self.folders))
        self.expect(errno.ENOTEMPTY if full else 0, lambda: os.rmdir(self.path(name)))
        if not full:
            self.folders.discard(name)

    def xattr(self):
        name, entry = self.file()
        if name is None:
            return
        key, value = f"user.k{self.rng.randrange(3)}", self.rng.randbytes(self.rng.randrange(300))
        if key in entry["xattrs"] and self.rng.random() < 0.4:
            os.removexattr(self.path(name), key)
            del entry["xattrs"][key]
        else:
            os.setxattr(self.path(name), key, value)
            entry["xattrs"][key] = value

    def chmod(self):
        name, entry = self.file()
        if name is not None:
            entry["mode"] = self.rng.choice((0o600, 0o644, 0o755, 0o640))
            os.chmod(self.path(name), entry["mode"])

    def look(self):
        if self.entries:
            self.check_entry(self.pick())

    def check_entry(self, name):
        entry, path = self.entries[name], self.path(name)
        status = os.lstat(path)
        wanted = {"nlink": len(entry["names"])}
        got = {"nlink": status.st_nlink}
        if "target" in entry:
            wanted["target"], got["target"] = entry["target"], os.readlink(path)
        else:
            wanted["mode"], got["mode"] = entry["mode"], stat.S_IMODE(status.st_mode)
            wanted["size"], got["size"] = len(entry["data"]), status.st_size
            wanted["xattrs"] = entry["xattrs"]
            got["xattrs"] = {k: os.getxattr(path, k) for k in os.listxattr(path)}
            data = contents(path)
            if data != entry["data"]:
                at = next((i for i, (a, b) in enumerate(zip(data, entry["data"])) if a != b), "end")
                raise Failure(f"{path}: content differs from byte {at} on")
        if got != wanted:
            raise Failure(f"{path}: {got} in place of {wanted}")

    def check(self):
        found, folders = set(), set()
        for folder, names, leaves in os.walk(self.folder):
            relative = os.path.relpath(folder, self.folder)
            folders.add("" if relative == "." else relative)
            for name in leaves + [n for n in names if os.path.islink(os.path.join(folder, n))]:
                found.add(os.path.normpath(os.path.join(relative, name)))
        if found != set(self.entries) or folders != self.folders:
            raise Failure(f"{self.folder}: other names: {found ^ set(self.entries)} "
                          f"{folders ^ self.folders}")
        for name in self.entries:
            self.check_entry(name)


class SharedFolders:
    """Changes folders that others change at the same time."""

    def __init__(self, root, number, rng):
        self.root, self.number, self.rng, self.records, self.blocks = root, number, rng, 0, 0

    def name(self):
        # A folder's name may be that of a file of another process, and vice versa.
        return os.path.join(self.root, self.rng.choice(("x", "x/y", "z", "x/n1", "z/n2")),
                            f"n{self.rng.randrange(12)}")

    def step(self):
        kind, call = self.rng.choice((
            ("open", self.write), ("open", self.write), ("open", self.append), ("open", self.read),
            ("rename", self.rename), ("rename", self.rename), ("unlink", self.unlink),
            ("link", lambda: os.link(self.name(), self.name(), follow_symlinks=False)),
            ("make", lambda: os.mkdir(self.name())), ("rmdir", lambda: os.rmdir(self.name())),
            # Not through a possible link: a walk in a circle that others change fails with ESTALE.
            ("make", lambda: os.symlink("other", self.name())), ("change", self.change),
            ("change", lambda: os.listdir(os.path.dirname(self.name())))))
        try:
            call()
        except OSError as error:
            if error.errno not in SHARED_ERRORS[kind]:
                raise

    def block(self):
        self.blocks += 1
        return RECORD.pack(self.number, self.blocks) * (BLOCK_BYTES // RECORD.size)

    def write(self):
        fd = os.open(self.name(), os.O_CREAT | self.rng.choice((os.O_WRONLY, os.O_RDWR)))
        try:
            for _ in range(self.rng.randrange(1, 6)):
                os.pwrite(fd, self.block(), self.rng.randrange(60) * BLOCK_BYTES)
            if self.rng.random() < 0.1:
                os.fsync(fd)
        finally:
            os.close(fd)

    def append(self):
        fd = os.open(os.path.join(self.root, "log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            for _ in range(self.rng.randrange(1, 5)):
                os.write(fd, RECORD.pack(self.number, self.records))
                self.records += 1
        finally:
            os.close(fd)

    def read(self):
        path = self.name()  # Retries, because a page may be copied during a write.
        if all(has_mixture(contents(path)) for _ in range(3)):
            raise Failure(f"{path}: a block is a mixture")

    def rename(self):
        rename2(self.name(), self.name(), self.rng.choice((0, 0, NOREPLACE, EXCHANGE)))

    def unlink(self):
        os.unlink(self.name())

    def change(self):
        path, kind = self.name(), self.rng.randrange(4)
        if kind == 0:
            os.truncate(path, self.rng.randrange(40) * BLOCK_BYTES)
        elif kind == 1:
            os.chmod(path, self.rng.choice((0o600, 0o644, 0o700)))
        elif kind == 2:
            os.setxattr(path, "user.shared", b"v" * self.rng.randrange(100))
        else:
            os.utime(path, ns=(1, self.rng.randrange(10**18)))


def has_mixture(data):
    """Returns whether a block is neither a hole nor completely from one process."""
    blocks = (data[at:at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))
    return any(b != b[:RECORD.size] * (len(b) // RECORD.size) for b in blocks)


def check_log(path, written):
    data, seen = contents(path), [0] * len(written)
    if len(data) % RECORD.size:
        raise Failure(f"{path}: a record is torn")
    for number, record in RECORD.iter_unpack(data):
        if seen[number] != record:
            raise Failure(f"{path}: record {record} of {number} in place of {seen[number]}")
        seen[number] += 1
    if seen != written:
        raise Failure(f"{path}: {seen} records in place of {written}")


def check_links(root):
    names, counts = {}, {}
    for folder, folders, leaves in os.walk(root):
        status = os.lstat(folder)
        below = sum(1 for n in folders if not os.path.islink(os.path.join(folder, n)))
        if status.st_nlink != 2 + below:
            raise Failure(f"{folder}: nlink {status.st_nlink}, {below} folders in it")
        for name in leaves + folders:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if not stat.S_ISDIR(status.st_mode):
                names.setdefault(status.st_ino, []).append(path)
                counts[status.st_ino] = status.st_nlink
            if stat.S_ISREG(status.st_mode) and "/own-" not in path and name != "log":
                if has_mixture(contents(path)):
                    raise Failure(f"{path}: a block is a mixture")
    for ino, paths in names.items():
        if counts[ino] != len(paths):
            raise Failure(f"{paths}: nlink {counts[ino]}")


def work(number, root, end, seed):
    rng = random.Random(seed * 1000 + number)
    own = OwnFolder(os.path.join(root, f"own-{number}"), rng)
    shared = SharedFolders(root, number, rng)
    steps = 0
    while time.monotonic() < end:
        (own if rng.random() < 0.5 else shared).step()
        steps += 1
    own.check()
    return [number, steps, shared.records]


def read_sealed(root, end, seed):
    def digests():
        result = {}
        for folder, _, leaves in os.walk(root):
            for name in leaves:
                path = os.path.join(folder, name)
                result[path] = hashlib.sha256(contents(path)).digest()
        return result
    wanted, rounds, slowest_s = digests(), 0, 0.0
    while time.monotonic() < end:
        start = time.monotonic()
        if digests() != wanted:
            raise Failure(f"{root} changes")
        rounds, slowest_s = rounds + 1, max(slowest_s, time.monotonic() - start)
    print(f"reader {seed}: {rounds} rounds of {len(wanted)} files, slowest {slowest_s:.2f} s")
    return [0, rounds, 0]


def in_process(function, *arguments):
    """Starts a process. Returns its id and the pipe for its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.write(writing, " ".join(map(str, function(*arguments))).encode())
        sys.stdout.flush()
        status = 0
    except Failure as failure:
        print(f"FAILED: {failure}", flush=True)
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    os._exit(status)


def main():
    seconds, seed, (first, second, sealed) = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:6]
    for root in (first, second):
        for name in ("x", "x/y", "z"):
            os.makedirs(os.path.join(root, name))
    end = time.monotonic() + seconds
    started = [(first, in_process(work, n, first, end, seed)) for n in range(WRITERS)]
    started += [(second, in_process(work, n, second, end, seed + 1)) for n in range(SECOND_WRITERS)]
    started += [(None, in_process(read_sealed, sealed, end, n)) for n in range(READERS)]
    failed, written, steps = 0, {first: [0] * WRITERS, second: [0] * SECOND_WRITERS}, 0
    for root, (child, pipe) in started:
        with os.fdopen(pipe, "rb") as result:
            words = result.read().split()
        if os.waitpid(child, 0)[1] != 0:
            failed += 1
        elif root is not None:
            written[root][int(words[0])] = int(words[2])
            steps += int(words[1])
    if failed:
        sys.exit(f"FAILED: seed {seed}: {failed} process(es)")
    for root, records in written.items():
        check_log(os.path.join(root, "log"), records)
        check_links(root)
    print(f"ok - seed {seed}: {steps} operations of {WRITERS + SECOND_WRITERS} processes; "
          f"{sum(map(sum, written.values()))} appended records")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure_of_main:
        sys.exit(f"FAILED: {failure_of_main}")
