#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the same random operations in two directories and compares every outcome.

usage: random_ops.py STEPS REFERENCE TESTED     VARVE_TEST_SEED chooses another sequence.

REFERENCE is on a plain file system. At the end all times are set to fixed values, so that
the trees can be compared completely.
"""

import errno
import os
import random
import stat
import sys

SEED = int(os.environ.get("VARVE_TEST_SEED", "1"))
FILE_BYTES_MAX = 3_000_000


class Pair:
    """A file that is open in both trees."""

    def __init__(self, descriptors, writable, readable):
        self.descriptors = descriptors
        self.writable = writable
        self.readable = readable


class Driver:
    def __init__(self, roots, seed):
        self.roots = roots
        self.random = random.Random(seed)
        self.open_files = []
        self.names = [os.path.join(*parts) for parts in
                      [(d, n) for d in ("", "a", "a/b", "c") for n in "uvwxyz"]]
        self.folders = ["", "a", "a/b", "c", "d"]
        self.step = 0

    def both(self, what, call):
        """Runs call(root index) for both trees; the outcomes must agree."""
        outcomes = []
        for index in range(2):
            try:
                outcomes.append((0, call(index)))
            except OSError as error:
                outcomes.append((error.errno, None))
        (ours, value), (theirs, other) = outcomes
        if ours != theirs:
            self.stop(what, f"{errno.errorcode.get(ours, ours)} / "
                            f"{errno.errorcode.get(theirs, theirs)}")
        return value, other

    def agree(self, what, call):
        value, other = self.both(what, call)
        if value != other:
            if isinstance(value, bytes):
                at = next((i for i, (a, b) in enumerate(zip(value, other)) if a != b),
                          min(len(value), len(other)))
                self.stop(what, f"{len(value)} / {len(other)} bytes, first difference at {at}")
            self.stop(what, f"{value!r:.200} / {other!r:.200}")
        return value

    def stop(self, what, difference):
        sys.exit(f"FAILED: seed {SEED}, step {self.step}: {what}: {difference}")

    def path(self, index, name):
        return os.path.join(self.roots[index], name)

    def data(self):
        size = self.random.choice((1, 100, 4096, 5000, 70_000, 300_000))
        if self.random.random() < 0.2:
            return bytes(size)
        return self.random.randbytes(min(size, 1000)) * (size // min(size, 1000))

    def op_open(self):
        name = self.random.choice(self.names)
        flags, readable = self.random.choice((
            (os.O_WRONLY | os.O_CREAT, False), (os.O_RDWR | os.O_CREAT, True),
            (os.O_WRONLY | os.O_CREAT | os.O_TRUNC, False), (os.O_RDONLY, True),
            (os.O_WRONLY | os.O_APPEND, False), (os.O_RDWR | os.O_TRUNC, True),
            (os.O_WRONLY | os.O_CREAT | os.O_EXCL, False)))
        mode = self.random.choice((0o644, 0o600, 0o4711))
        pair = self.both(f"open {name} {flags:o}",
                         lambda i: os.open(self.path(i, name), flags, mode))
        if pair[0] is not None:
            self.open_files.append(Pair(pair, flags & 3 != os.O_RDONLY, readable))

    def op_close(self):
        if self.open_files and (len(self.open_files) > 12 or self.random.random() < 0.5):
            pair = self.open_files.pop(self.random.randrange(len(self.open_files)))
            self.both("close", lambda i: os.close(pair.descriptors[i]))

    def pick(self, condition):
        fitting = [pair for pair in self.open_files if condition(pair)]
        return self.random.choice(fitting) if fitting else None

    def op_write(self):
        pair = self.pick(lambda p: p.writable)
        if not pair:
            return
        data, position = self.data(), self.random.random()
        def write(i):
            fd = pair.descriptors[i]
            size = os.fstat(fd).st_size
            offset = size if position < 0.5 else int(position * min(size + 5000, FILE_BYTES_MAX))
            return os.pwrite(fd, data, min(offset, FILE_BYTES_MAX))
        self.agree("write", write)

    op_write_more = op_write

    def op_append_by_name(self):
        name, data = self.random.choice(self.names), self.data()
        def append(i):
            fd = os.open(self.path(i, name), os.O_WRONLY | os.O_APPEND)
            try:
                return os.write(fd, data) if os.fstat(fd).st_size < FILE_BYTES_MAX else 0
            finally:
                os.close(fd)
        self.agree(f"append to {name}", append)

    def op_read(self):
        pair = self.pick(lambda p: p.readable)
        if pair:
            offset, size = self.random.randrange(500_000), self.random.choice((10, 4096, 200_000))
            self.agree("read", lambda i: os.pread(pair.descriptors[i], size, offset))

    def op_read_all(self):
        name = self.random.choice(self.names)
        def read(i):
            with open(self.path(i, name), "rb") as file:
                return file.read()
        self.agree(f"read {name}", read)

    def op_fsync(self):
        pair = self.pick(lambda p: p.writable)
        if pair:
            self.both("fsync", lambda i: os.fsync(pair.descriptors[i]))

    def op_ftruncate(self):
        pair = self.pick(lambda p: p.writable)
        if pair:
            size = self.random.choice((0, 1, 4095, 4096, 100_000, 1_000_000))
            self.both(f"ftruncate {size}", lambda i: os.ftruncate(pair.descriptors[i], size))

    def op_truncate(self):
        name, size = self.random.choice(self.names), self.random.choice((0, 3, 10_000, 777_777))
        self.both(f"truncate {name} {size}", lambda i: os.truncate(self.path(i, name), size))

    def op_rename(self):
        old, new = self.random.sample(self.names + self.folders[1:], 2)
        self.both(f"rename {old} {new}", lambda i: os.rename(self.path(i, old), self.path(i, new)))

    def op_link(self):
        old, new = self.random.sample(self.names, 2)
        self.both(f"link {old} {new}", lambda i: os.link(self.path(i, old), self.path(i, new)))

    def op_unlink(self):
        name = self.random.choice(self.names)
        self.both(f"unlink {name}", lambda i: os.unlink(self.path(i, name)))

    def op_mkdir(self):
        name = self.random.choice(self.folders[1:])
        self.both(f"mkdir {name}", lambda i: os.mkdir(self.path(i, name), 0o750))

    def op_rmdir(self):
        if self.random.random() < 0.3:
            name = self.random.choice(self.folders[1:])
            self.both(f"rmdir {name}", lambda i: os.rmdir(self.path(i, name)))

    def op_symlink(self):
        name = self.random.choice(self.names)
        if self.random.random() < 0.3:
            self.both(f"symlink {name}", lambda i: os.symlink("t" * 30, self.path(i, name)))

    def op_attributes(self):
        name = self.random.choice(self.names)
        mode, owner = self.random.choice((0o600, 0o755, 0o4755, 0o444)), self.random.choice((0, 7))
        def change(i):
            path = self.path(i, name)
            os.chown(path, owner, owner + 1)
            os.chmod(path, mode)
            os.utime(path, ns=(5, 10**18 + mode))
        self.both(f"attributes of {name}", change)

    def op_xattr(self):
        name = self.random.choice(self.names)
        value = self.random.randbytes(self.random.choice((0, 10, 500)))
        key, remove = self.random.choice(("user.a", "user.b")), self.random.random() < 0.3
        if remove:
            self.both("removexattr", lambda i: os.removexattr(self.path(i, name), key))
        else:
            self.both("setxattr", lambda i: os.setxattr(self.path(i, name), key, value))

    def op_look(self):
        name = self.random.choice(self.names)
        def look(i):
            s = os.lstat(self.path(i, name))
            size = 0 if stat.S_ISDIR(s.st_mode) else s.st_size
            return s.st_mode, s.st_uid, s.st_gid, size, s.st_nlink
        self.agree(f"stat {name}", look)
        folder = self.random.choice(self.folders)
        self.agree(f"list {folder}", lambda i: sorted(os.listdir(self.path(i, folder))))

    def run(self, steps):
        operations = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("op_")]
        weights = [{"op_open": 3, "op_write": 4, "op_write_more": 4, "op_mkdir": 2}.get(
            op.__name__, 1) for op in operations]
        for self.step in range(steps):
            operation = self.random.choices(operations, weights)[0]
            operation()
        while self.open_files:
            pair = self.open_files.pop()
            self.both("last close", lambda i: os.close(pair.descriptors[i]))

    def fix_times(self):
        for root in self.roots:
            for folder, names, leaves in os.walk(root, topdown=False):
                for name in names + leaves:
                    os.utime(os.path.join(folder, name), ns=(7, 7), follow_symlinks=False)
            os.utime(root, ns=(7, 7))


def main():
    driver = Driver(sys.argv[2:4], SEED)
    driver.run(int(sys.argv[1]))
    driver.fix_times()
    print(f"ok - {sys.argv[1]} random operations (seed {SEED}) behave as on a plain file system")


if __name__ == "__main__":
    main()
