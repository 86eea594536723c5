#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two trees in everything that a backup must keep.

usage: tree_state.py [--ignore FIELD,…] A B

Fields: mode uid gid size nlink rdev mtime links xattrs target data holes. Does not compare size
and nlink of directories, which depend on the file system. `links` is the set of names in the tree
that share one inode.
"""

import argparse
import hashlib
import os
import stat
import sys

from data_ranges import data_ranges


def data_map(fd, size):
    """Returns ranges of data as (start, end), with a granularity of 4096."""
    ranges = []
    for start, end in data_ranges(fd):
        start, end = start & ~4095, min(-(-end // 4096) * 4096, size)
        if ranges and ranges[-1][1] >= start:
            start = ranges.pop()[0]
        ranges.append((start, end))
    return ranges


def content_state(path, size, ignore):
    """Returns the holes, and a digest of the bytes that does not depend on holes."""
    block_bytes, zeros = 1 << 16, bytes(1 << 16)
    digest, state = hashlib.sha256(), {}
    fd = os.open(path, os.O_RDONLY)
    try:
        ranges = data_map(fd, size)
        if "holes" not in ignore:
            state["holes"] = ranges
        done = 0
        for start, end in ranges if "data" not in ignore else []:
            at = max(done, start & -block_bytes)
            while at < end:
                block = os.pread(fd, block_bytes, at)
                if block != zeros[:len(block)]:
                    digest.update(at.to_bytes(8, "little") + block)
                at += block_bytes
            done = at
        state["data"] = digest.hexdigest()
    finally:
        os.close(fd)
    return state


def entry_state(path, ignore):
    status = os.lstat(path)
    is_directory = stat.S_ISDIR(status.st_mode)
    state = {
        "mode": oct(status.st_mode), "uid": status.st_uid, "gid": status.st_gid,
        "mtime": status.st_mtime_ns,
    }
    if not is_directory:
        state["size"] = status.st_size
        state["nlink"] = status.st_nlink
    if stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode):
        state["rdev"] = status.st_rdev
    if stat.S_ISLNK(status.st_mode):
        state["target"] = os.readlink(path)
    if "xattrs" not in ignore:
        state["xattrs"] = {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in sorted(os.listxattr(path, follow_symlinks=False))
            if not name.startswith("user.varve.")}
    if stat.S_ISREG(status.st_mode):
        state.update(content_state(path, status.st_size, ignore))
    return (status.st_dev, status.st_ino), state


def tree_state(root, ignore):
    """Returns relative path (bytes) → fields."""
    root = os.fsencode(root)
    entries, names_of = {}, {}

    def add(path):
        relative = os.path.relpath(path, root)
        inode, state = entry_state(path, ignore)
        entries[relative] = (inode, state)
        names_of.setdefault(inode, []).append(relative)

    add(root)
    is_directory = stat.S_ISDIR(os.lstat(root).st_mode)
    for folder, names, leaves in os.walk(root, onerror=raise_it) if is_directory else ():
        for name in names + leaves:
            add(os.path.join(folder, name))
    result = {}
    for relative, (inode, state) in entries.items():
        state["links"] = sorted(names_of[inode])
        result[relative] = {k: v for k, v in state.items() if k not in ignore}
    return result


def raise_it(error):
    raise error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ignore", default="")
    parser.add_argument("trees", nargs=2)
    options = parser.parse_args()
    ignore = set(options.ignore.split(","))
    first, second = (tree_state(tree, ignore) for tree in options.trees)
    differences = []
    for path in sorted(first.keys() | second.keys()):
        if path not in second or path not in first:
            differences.append(f"{path!r}: only in {options.trees[path not in first]}")
            continue
        for field in sorted(first[path].keys() | second[path].keys()):
            ours, theirs = first[path].get(field), second[path].get(field)
            if ours != theirs:
                differences.append(f"{path!r}: {field}: {ours!r:.300} / {theirs!r:.300}")
    for difference in differences[:40]:
        print(difference)
    if differences:
        print(f"{len(differences)} difference(s) between {' and '.join(options.trees)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
