#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: damage.py REPO TREE MNT LABEL

REPO holds s/one, a copy of TREE. For each region of its containers, and for places in its
catalog, flips one byte in a copy of REPO, checks, and reads everything through a mount.
"""

import errno
import json
import os
import random
import shutil
import struct
import subprocess
import sys

VARVE = os.environ["VARVE"]
REPO, TREE, MNT, LABEL = sys.argv[1:5]
COPY = REPO + "-damaged"
PAGE = 4096
EIO_BYTES_MAX = (128 << 10) + (64 << 10) * 2 + 2 * PAGE


def fail(message):
    sys.exit(f"FAILED: {LABEL}: {message}")


def padded(size):
    return -(-size // PAGE) * PAGE


def segments():
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(REPO)
                  for name in names if name.endswith(".seg"))


def containers(path):
    """Returns (offset, region → offset in the file) for each container; see docs/FORMAT.md."""
    size, at = os.path.getsize(path), 0
    with open(path, "rb") as file:
        while at < size:
            file.seek(at)
            header = file.read(128)
            frames, chunks, runs, head, data = struct.unpack_from("<5I", header, 20)
            directory, ids = 128 + 24 * frames, 12 * runs
            table_end = directory + ids + 35 * chunks
            regions = {"magic": 0, "header": 21, "reserved": 70, "header checksum": 125,
                       "frame directory": 128 + 24 * (frames // 2) + 3, "id runs": directory + 5,
                       "chunk table": directory + ids + 35 * (chunks // 2) + 1,
                       "data": head + data // 2, "end of the data": head + data - 1}
            if head > table_end:
                regions["padding of the head"] = head - 1
            if padded(data) > data:
                regions["padding of the data"] = head + padded(data) - 1
            yield at, {name: at + offset for name, offset in regions.items()}
            at += head + padded(data)


def varve(*arguments):
    return subprocess.run([VARVE, *arguments], capture_output=True, check=False, timeout=60)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x10]))


def fresh_copy():
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(REPO, COPY)


def read_file(path, whole):
    """Returns the number of bytes that gave EIO. Every delivered byte must be correct."""
    bad = 0
    fd = os.open(path, os.O_RDONLY)
    try:
        for at in range(0, len(whole), PAGE):
            try:
                data = os.pread(fd, PAGE, at)
            except OSError as error:
                if error.errno != errno.EIO:
                    fail(f"{path} at {at}: {error}")
                bad += min(PAGE, len(whole) - at)
                continue
            if data != whole[at:at + PAGE]:
                fail(f"{path} at {at}: wrong data")
    finally:
        os.close(fd)
    return bad


def read_all():
    """Returns file → bytes that gave EIO, for the damaged copy through a mount."""
    mounted = varve("mount", "-o", "ro", COPY, MNT)
    if mounted.returncode:
        return None, mounted.stderr.decode(errors="replace")
    damaged = {}
    try:
        for folder, _, names in os.walk(TREE):
            for name in names:
                relative = os.path.relpath(os.path.join(folder, name), TREE)
                with open(os.path.join(TREE, relative), "rb") as file:
                    whole = file.read()
                try:
                    bad = read_file(os.path.join(MNT, "s/one", relative), whole)
                except OSError as error:
                    # Only a damaged catalog can hide a name; then the error must say so.
                    if error.errno != errno.EIO:
                        raise
                    bad = len(whole)
                if bad:
                    damaged[relative] = bad
    finally:
        if varve("umount", MNT).returncode:
            fail("the mount is stuck")
    return damaged, ""


def check_names(segment, region, affected_expected):
    """Checks that `varve check` finds the damage and names the segment and the files."""
    run = varve("check", "--json", COPY)
    if run.returncode != 1:
        fail(f"check of a flipped byte in the {region} ended with {run.returncode}: {run.stderr}")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    damages = [line for line in lines if line["message_type"] == "damage"]
    if not any(os.path.basename(segment) in damage["where"] for damage in damages):
        fail(f"check does not name {segment} for the {region}: {damages}")
    affected = {entry["name"] for damage in damages for entry in damage["affected"]}
    for name in affected_expected:
        if f"s/one/{name}" not in affected:
            fail(f"check does not name s/one/{name} for the {region}: {sorted(affected)}")


def test_containers():
    all_containers = [(path, *found) for path in segments() for found in containers(path)]
    if len(all_containers) < 3:
        fail(f"only {len(all_containers)} containers")
    path, _, regions = all_containers[1]
    relative = os.path.relpath(path, REPO)
    for region, offset in regions.items():
        fresh_copy()
        flip(os.path.join(COPY, relative), offset)
        damaged, message = read_all()
        if damaged is None:
            fail(f"a flipped byte in the {region} prevents mounting: {message}")
        total = sum(damaged.values())
        if region in ("data", "end of the data"):
            if not damaged or total > EIO_BYTES_MAX:
                fail(f"{region}: {total} bytes are unreadable, in {damaged}")
        elif region == "padding of the data":
            if total:
                fail(f"{region}: {damaged} are unreadable for nothing")
        elif not damaged or len(damaged) > 12:
            fail(f"{region}: unreadable: {damaged}")
        check_names(path, region, damaged)
        print(f"ok - {LABEL}: a flipped byte in the {region}: check names it, "
              f"{total} bytes of {len(damaged)} files give EIO, the rest is right")


def test_truncation():
    path = segments()[-1]
    fresh_copy()
    os.truncate(os.path.join(COPY, os.path.relpath(path, REPO)), os.path.getsize(path) - 8192)
    damaged, message = read_all()
    if not damaged:
        fail(f"a truncated segment: {damaged} {message}")
    check_names(path, "cut end", damaged)
    fresh_copy()
    os.unlink(os.path.join(COPY, os.path.relpath(path, REPO)))
    damaged, message = read_all()
    if not damaged:
        fail(f"a missing segment: {damaged} {message}")
    check_names(path, "missing segment", damaged)
    print(f"ok - {LABEL}: a truncated and a missing segment are named, the rest is right")


def catalog_places(path, count):
    """Returns offsets of non-zero bytes: in used pages, and in some formerly used ones."""
    rng = random.Random(6)
    with open(path, "rb") as file:
        image = file.read()
    blocks = [at for at in range(2 * PAGE, len(image), 32) if any(image[at:at + 32])]
    return [rng.choice(blocks) + rng.randrange(32) for _ in range(count)]


def test_catalog():
    outcomes = {"harmless": 0, "named": 0}
    for offset in catalog_places(os.path.join(REPO, "catalog", "data.mdb"), 40):
        fresh_copy()
        flip(os.path.join(COPY, "catalog", "data.mdb"), offset)
        run = varve("check", "--json", COPY)
        if run.returncode not in (0, 1):
            fail(f"catalog byte {offset}: check ended with {run.returncode}: {run.stderr}")
        damaged, message = read_all()
        if run.returncode == 0 and (damaged is None or damaged):
            fail(f"catalog byte {offset}: check is content, but {damaged} {message}")
        outcomes["named" if run.returncode else "harmless"] += 1
    if not outcomes["named"]:
        fail("no flipped byte in the catalog was ever found")
    print(f"ok - {LABEL}: flipped bytes in the catalog: {outcomes}, never wrong data")


def main():
    test_containers()
    test_catalog()
    test_truncation()


if __name__ == "__main__":
    main()
