#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mounts an empty file system that calls itself Varve and claims to show another's repository.

forged_mount.py DIR REPOSITORY PROCESS USER: serves as USER until it is unmounted. It implements
the kernel's protocol (linux/fuse.h) itself, so that no library checks its claims. It mounts as
fusermount3 does for a user, also if users have no access to /dev/fuse.
"""
import ctypes
import os
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, GETXATTR, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 22, 26, 36, 42
ENOENT, ENOSYS, ENODATA = 2, 38, 61


def mount(directory, source, user):
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={user},group_id={user}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), directory.encode(), b"fuse.varve", 6, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    return device


def attributes(node):
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, stat.S_IFDIR | 0o777, 2, 0, 0, 0,
                       4096, 0)


def main():
    directory, repository, process, user = sys.argv[1:]
    claims = {b"user.varve.repository": repository.encode(), b"user.varve.root": b"",
              b"user.varve.pid": process.encode(), b"user.varve.state": b"open"}
    device = mount(directory, repository, int(user))
    nodes = {}
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:  # ENODEV: unmounted.
            return
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        body = request[40:]
        error, reply = 0, b""
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        if opcode == INIT:
            reply = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 4, 4, 1 << 16, 1, 1, 0, 0)
        elif opcode == GETATTR:
            reply = struct.pack("<QII", 0, 0, 0) + attributes(node)
        elif opcode == LOOKUP and body == b"varve.repo\0":
            error = ENOENT
        elif opcode == LOOKUP:
            child = nodes.setdefault((node, body), len(nodes) + 2)
            reply = struct.pack("<QQQQII", child, 0, 0, 0, 0, 0) + attributes(child)
        elif opcode == GETXATTR:
            room = struct.unpack_from("<I", body)[0]
            value = claims.get(body[8:].rstrip(b"\0"))
            if value is None:
                error = ENODATA
            else:
                reply = value if room else struct.pack("<II", len(value), 0)
        else:
            error = ENOSYS
        if error:
            reply = b""
        os.write(device, struct.pack("<IiQ", 16 + len(reply), -error, unique) + reply)


main()
