#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a tree of everything that a file system allows and a backup tool trips over.

usage: hostile_tree.py DIR [huge] DIR must not exist. Needs root. Reports what it could not create.
`huge` adds a file with a hole of a tebibyte, which rsync would read for hours.
"""

import os
import random
import socket
import stat
import struct
import subprocess
import sys

SEED = int(os.environ.get("VARVE_TEST_SEED", "20"))
NS = 1_000_000_000


def write(path, data=b""):
    with open(path, "wb") as file:
        file.write(data)


def make_names(root):
    os.mkdir(root + b"/names")
    for name in (b"n" * 255, b"\xff\xfe\x80 not utf-8", b"new\nline", b" ", b"-rf", b"*?[x]",
                 b"tab\tback\\slash", b"\x01\x7f", "Grüße 日本".encode(), b"...",
                 b".partial", b"v.partial", b"latest", b"quote'\"`$(true)"):
        write(root + b"/names/" + name, name)
    os.mkdir(root + b"/names/" + b"d" * 255)
    write(root + b"/names/" + b"d" * 255 + b"/" + b"f" * 255, b"long")


def make_types(root):
    top = root + b"/types"
    os.mkdir(top)
    os.mkfifo(top + b"/fifo", 0o640)
    os.mknod(top + b"/char", stat.S_IFCHR | 0o620, os.makedev(250, 70000))
    os.mknod(top + b"/block", stat.S_IFBLK | 0o660, os.makedev(7, 255))
    here = os.getcwd()
    os.chdir(top)  # A socket's address has 108 bytes at most.
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("socket")
    os.chdir(here)
    os.symlink(b"t" * 4095, top + b"/symlink-4095")
    os.symlink(b"../nowhere", top + b"/dangling")
    os.symlink(b".", top + b"/loop")
    os.symlink(b"\xff\n", top + b"/symlink-bytes")
    os.lchown(top + b"/dangling", 12, 34)
    os.mkdir(top + b"/empty")
    write(top + b"/empty-file")


def make_attributes(root):
    top = root + b"/attributes"
    os.mkdir(top)
    for mode in (0o4755, 0o2755, 0o1644, 0o6711, 0o7777, 0o000, 0o400):
        write(top + b"/mode-%04o" % mode, b"m")
        os.chmod(top + b"/mode-%04o" % mode, mode)
    for mode in (0o1777, 0o2775, 0o000, 0o7000):
        os.mkdir(top + b"/dir-%04o" % mode)
        os.chmod(top + b"/dir-%04o" % mode, mode)
    for owner in (0, 1, 65534, 65536, 4_000_000_000, 0xFFFFFFFE):
        write(top + b"/owner-%d" % owner)
        os.chown(top + b"/owner-%d" % owner, owner, owner)
    times = (-1, -NS, -2_208_988_800 * NS // 2, 0, 1, 999_999_999, 1_600_000_000 * NS + 123_456_789,
             4_294_967_296 * NS + 1)
    for number, time_ns in enumerate(times):
        path = top + b"/time-%d" % number
        write(path, b"t")
        os.utime(path, ns=(time_ns, time_ns))
    path = top + b"/time-dir"
    os.mkdir(path)
    write(path + b"/inside")
    os.utime(path, ns=(-86400 * NS + 5, -86400 * NS + 5))
    path = top + b"/time-symlink"
    os.symlink(b"x", path)
    os.utime(path, ns=(77, 77), follow_symlinks=False)


def make_xattrs(root, missing):
    top = root + b"/xattrs"
    os.mkdir(top)
    path = top + b"/many"
    write(path, b"x")
    for number in range(20):
        os.setxattr(path, b"user.%d" % number, bytes(range(number * 5)))
    os.setxattr(path, b"user.empty", b"")
    os.setxattr(top, b"user.on-a-directory", b"yes\0no")
    os.setxattr(path, b"trusted.varve-test", b"t")
    path = top + b"/large"
    write(path, b"x")
    os.setxattr(path, b"user.large", bytes(i % 251 for i in range(3000)))
    path = top + b"/capability"
    write(path, b"#!")
    os.chmod(path, 0o755)
    # Version 2: cap_net_raw permitted and effective.
    os.setxattr(path, b"security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))
    for kind, rules in ((b"acl-file", "u:4000000000:rw,g:7:r,m::rw"),
                        (b"acl-dir", "d:u:1:rwx,d:g:2:rx,u:9:rwx")):
        path = top + b"/" + kind
        os.mkdir(path) if kind.endswith(b"dir") else write(path, b"a")
        if subprocess.run(["setfacl", "-m", rules, path], check=False).returncode:
            missing.append("ACLs")


def make_links(root):
    top = root + b"/links"
    os.makedirs(top + b"/a/deep")
    os.mkdir(top + b"/b")
    write(top + b"/a/one", b"shared by three names")
    os.link(top + b"/a/one", top + b"/b/two")
    os.link(top + b"/a/one", top + b"/a/deep/three")
    os.symlink(b"target", top + b"/a/symlink")
    os.link(top + b"/a/symlink", top + b"/b/symlink", follow_symlinks=False)
    os.mkfifo(top + b"/a/fifo")
    os.link(top + b"/a/fifo", top + b"/b/fifo")
    write(top + b"/a/empty")
    os.link(top + b"/a/empty", top + b"/b/empty")
    for number in range(100):
        os.link(top + b"/a/empty", top + b"/b/many-%d" % number)


def make_contents(root, rng):
    top = root + b"/contents"
    os.mkdir(top)
    for size in (1, 2047, 2048, 2049, 4096, 65535, 65536, 65537, 131072, 131073, 1 << 20):
        write(top + b"/size-%d" % size, rng.randbytes(size))
    write(top + b"/zeros", bytes(3 << 20))
    write(top + b"/text", b"the same line again\n" * 40000)
    block = rng.randbytes(300_000)
    write(top + b"/repeated", block * 5)
    write(top + b"/over-two-containers", rng.randbytes(9 << 20))
    path = top + b"/deep"
    os.mkdir(path)
    for level in range(120):
        path += b"/d%d" % level
        os.mkdir(path)
    write(path + b"/bottom", b"here")
    os.mkdir(top + b"/wide")
    for number in range(3000):
        write(top + b"/wide/%d" % number, b"%d" % (number // 3))


def make_holes(root, rng, huge):
    top = root + b"/holes"
    os.mkdir(top)
    mebibyte = 1 << 20
    plans = {
        b"start": [(4 * mebibyte, 100_000)],
        b"middle": [(0, 100_000), (3 * mebibyte, 5000), (9 * mebibyte, mebibyte)],
        b"end": [(0, 70_000)],
        b"only": [],
        b"tiny-data": [(mebibyte * n, 1) for n in range(1, 20)],
    }
    if huge:
        plans[b"huge"] = [((1 << 40) + 4096 * 3, 4096)]
    for name, parts in plans.items():
        with open(top + b"/" + name, "wb") as file:
            end = 0
            for offset, size in parts:  # No zero bytes: rsync -S makes holes of them.
                file.seek(offset)
                file.write(rng.randbytes(size).replace(b"\0", b"\1"))
                end = offset + size
            file.truncate(-(-end // mebibyte) * mebibyte + 7 * mebibyte)


def main():
    root = os.fsencode(sys.argv[1])
    os.umask(0o022)
    rng, missing = random.Random(SEED), []
    os.mkdir(root)
    make_names(root)
    make_types(root)
    make_attributes(root)
    make_xattrs(root, missing)
    make_links(root)
    make_contents(root, rng)
    make_holes(root, rng, "huge" in sys.argv[2:])
    os.chmod(root, 0o2751)
    os.chown(root, 5, 6)
    os.utime(root, ns=(123 * NS + 456, 123 * NS + 456))
    for what in missing:
        print(f"not made here: {what}")


if __name__ == "__main__":
    main()
