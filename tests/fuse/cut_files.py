#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: cut_files.py REPO VERSIONS WORK

REPO holds each tree of VERSIONS as a version of series s. Cuts each segment and volume of a copy of
REPO at its end, by several lengths, and fails unless restores, `varve check --read-data` and
`varve repair` agree on what is lost. VARVE_TEST_PARITY=1: the repository has parity for short cuts.
"""

import json
import os
import shutil
import struct
import subprocess
import sys

from repository_copy import copy_repository

VARVE = os.environ["VARVE"]
REPO, VERSIONS, WORK = sys.argv[1:4]
HAS_PARITY = os.environ.get("VARVE_TEST_PARITY") == "1"
COPY = os.path.join(WORK, "copy")
OUT = os.path.join(WORK, "restored")
# A frame has at most this many raw bytes, so a cut touches at most one more than it has stored bytes.
FRAME_BYTES_MAX = 131072
PARITY_BYTES = 65536
FIXED_HEADER = struct.Struct("<IHHIII")
SEALED = 2
COMPACT = 1


def varve(*arguments):
    run = subprocess.run([VARVE, *arguments], capture_output=True, check=False)
    if run.returncode < 0 or run.returncode > 3:
        sys.exit(f"FAILED: {' '.join(arguments)} ended with {run.returncode}: {run.stderr!r}")
    return run


def json_lines(run, kind):
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return [line for line in lines if line["message_type"] == kind]


def containers(path):
    """Returns the offset and the length of each container of a file."""
    found, at = [], 0
    with open(path, "rb") as file:
        image = file.read()
    while at < len(image):
        _, _, _, flags, _, _ = FIXED_HEADER.unpack_from(image, at)
        if flags & SEALED:
            length = struct.unpack_from("<I", image, at + 20)[0]
        else:
            header, data = struct.unpack_from("<II", image, at + 32)
            length = header + (data if flags & COMPACT else (data + 4095) // 4096 * 4096)
        found.append((at, length))
        at += length
    return found


def cuts_of(path):
    """Returns how many bytes are cut off: parts of padding, of frames and of headers."""
    last_at, last = containers(path)[-1]
    cuts = {1, 100, 4095, 4096, 4097, 60000, last // 2, last - 200, last}
    if last_at > 0:
        cuts |= {last + 1, last + 5000}
    size = os.path.getsize(path)
    return sorted(cut for cut in cuts if 0 < cut <= size)


def check(what):
    run = varve("check", "--read-data", "--json", COPY)
    damages = [(d["where"], d["what"], tuple(a["name"] for a in d["affected"]))
               for d in json_lines(run, "damage")]
    if (run.returncode != 0) != bool(damages):
        sys.exit(f"FAILED: {what}: check ends with {run.returncode}, and names {damages}")
    return damages


def lost_bytes(wanted, got):
    """Returns the number of bytes from the first to the last wrong one in a hole; fails for others."""
    wrong = [at for at in range(0, len(wanted), 512) if wanted[at:at + 512] != got[at:at + 512]]
    for at in wrong:
        if not any(got[at:at + 512]):
            continue
        pairs = zip(wanted[at:at + 512], got[at:at + 512])
        if any(b not in (a, 0) for a, b in pairs):
            return None
    return 512 * len(wrong)


def restore_all(what):
    """Restores all versions. Returns the names of the files with holes, and the lost bytes of the
    version that lost most."""
    holes, most = set(), 0
    for version in sorted(os.listdir(VERSIONS)):
        shutil.rmtree(OUT, ignore_errors=True)
        run = varve("restore", COPY, f"s/{version}", OUT)
        told = run.stderr.decode(errors="replace")
        lost, damaged = 0, set()
        for name in sorted(os.listdir(os.path.join(VERSIONS, version))):
            with open(os.path.join(VERSIONS, version, name), "rb") as file:
                wanted = file.read()
            with open(os.path.join(OUT, name), "rb") as file:
                got = file.read()
            if wanted == got:
                continue
            here = lost_bytes(wanted, got) if len(wanted) == len(got) else None
            if here is None or f"{name}: damaged" not in told:
                sys.exit(f"FAILED: {what}: {version}/{name} has wrong bytes: {told}")
            damaged.add(f"s/{version}/{name}")
            lost += here
        if (run.returncode != 0) != bool(damaged):
            sys.exit(f"FAILED: {what}: the restore of {version} ends with {run.returncode}: {told}")
        holes |= damaged
        most = max(most, lost)
    return holes, most


def repair_steps(what, *options):
    run = varve("repair", "--json", *options, COPY)
    steps = [(step["kind"], step["where"]) for step in json_lines(run, "step")]
    if "--yes" in options and run.returncode == 1:
        sys.exit(f"FAILED: {what}: the repair ends with 1: {run.stderr!r}")
    return steps


def images():
    """Returns the bytes of all segments and volumes."""
    found = {}
    for path in data_files(COPY):
        with open(path, "rb") as file:
            found[path] = file.read()
    return found


def data_files(repository):
    found = []
    for folder, _, names in os.walk(repository):
        found += [os.path.join(folder, name) for name in names if name.endswith((".seg", ".vol"))]
    return sorted(found)


def affected_by(damages):
    return {name for damage in damages for name in damage[2] if name.startswith("s/")}


def try_cut(relative, cut):
    """Cuts a file, and compares what restores, checks and repairs say. Returns the lost bytes."""
    what = f"{relative} cut by {cut}"
    shutil.rmtree(COPY, ignore_errors=True)
    copy_repository(REPO, COPY)
    path = os.path.join(COPY, relative)
    os.truncate(path, os.path.getsize(path) - cut)

    holes, lost = restore_all(what)
    damages = check(what)
    if affected_by(damages) != holes:
        sys.exit(f"FAILED: {what}: the restore has holes in {sorted(holes)}, check names {damages}")
    last = containers(os.path.join(REPO, relative))[-1][1]
    if cut < last - 200 and lost > cut + FRAME_BYTES_MAX:
        sys.exit(f"FAILED: {what}: {lost} bytes are lost")
    plan = repair_steps(what, "--dry-run")
    if not plan and not holes and damages:
        sys.exit(f"FAILED: {what}: check names {damages}, and there is nothing to repair")

    repair_steps(what, "--yes")
    after = check(what)
    if check(what) != after:
        sys.exit(f"FAILED: {what}: two checks after the repair differ")
    left, _ = restore_all(what + ", repaired")
    if bool(after) != bool(left) or affected_by(after) != left or not left <= holes:
        sys.exit(f"FAILED: {what}: after the repair, {sorted(left)} have holes, check names {after}")
    if HAS_PARITY and cut <= PARITY_BYTES and left:
        sys.exit(f"FAILED: {what}: parity did not restore {sorted(left)}")
    before = images()
    again = repair_steps(what, "--yes")
    if again or images() != before:
        sys.exit(f"FAILED: {what}: the second repair changes something: {again}")
    return lost


def main():
    tried, free = 0, 0
    for path in data_files(REPO):
        relative = os.path.relpath(path, REPO)
        for cut in cuts_of(path):
            free += 1 if try_cut(relative, cut) == 0 else 0
            tried += 1
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.rmtree(OUT, ignore_errors=True)
    if free == 0 or free == tried:
        sys.exit(f"FAILED: {free} of {tried} cuts lost nothing")
    print(f"{tried} cuts of {len(data_files(REPO))} files, {free} of padding alone")


if __name__ == "__main__":
    main()
