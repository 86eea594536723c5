#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: damages.py REPO VERSIONS TREE COPY COUNT

REPO holds each tree of VERSIONS as a version of series s, the newest stored from TREE. COUNT times,
damages one file of a copy of REPO; prints what was found, and fails if `varve check --read-data`
finds less than 99 %, if a restore or a further store gives a wrong byte, or if a command does not
end by itself. VARVE_TEST_SEED chooses the damages.
"""

import collections
import os
import random
import shutil
import subprocess
import sys

VARVE = os.environ["VARVE"]
REPO, VERSIONS, TREE, COPY = sys.argv[1:5]
COUNT = int(sys.argv[5])
SEED = int(os.environ.get("VARVE_TEST_SEED", "20"))
KINDS = ["flip", "zero", "truncate", "swap", "delete"]
# Files without stored data.
IGNORED = {"lock", "lock.mdb", "reserve", "scrub", "checked"}
# Files that only spare work: a damaged one must not count, and nothing has to be reported.
HINTS = ("settled", "sources-")
POOL_INDEX = "pool/index"
# Derived files: `check` notes a missing one, and the next store builds it again.
DERIVED = "index-"


def varve(*arguments):
    """Runs a command, which must end by itself with any damage. The script's time limit ends a
    hang."""
    run = subprocess.run([VARVE, "-q", *arguments], capture_output=True, check=False)
    if run.returncode < 0 or run.returncode > 128:
        raise ChildProcessError(f"{arguments[0]} ended with {run.returncode}: {run.stderr!r}")
    return run


def is_hint(path):
    return (os.path.basename(path).startswith(HINTS)
            or os.path.relpath(path, COPY).startswith(POOL_INDEX)
            or (os.path.basename(path).startswith(DERIVED) and not os.path.exists(path)))


def targets():
    found = []
    for folder, _, names in os.walk(COPY):
        found += [os.path.join(folder, name) for name in names if name not in IGNORED]
    return sorted(found)


def damaged(kind, path, rng):
    """Returns the file's bytes after a random damage, which always changes them; None for no file.
    """
    with open(path, "rb") as file:
        image = bytearray(file.read())
    before = bytes(image)
    while image == before:
        at = rng.randrange(len(image))
        if kind == "flip":
            image[at] ^= 1 << rng.randrange(8)
        elif kind == "zero":
            end = min(len(image), at + rng.randrange(1, 8192))
            image[at:end] = bytes(end - at)
        elif kind == "truncate":
            del image[at:]
        elif kind == "swap":
            length = rng.randrange(1, max(2, min(4096, len(image) // 3)))
            one, other = sorted(rng.randrange(len(image) - length) for _ in range(2))
            if other >= one + length:
                image[one:one + length], image[other:other + length] = \
                    image[other:other + length], image[one:one + length]
            elif len(image) < 16:
                image[0] ^= 1
        else:
            return None
    return bytes(image)


def wrong_bytes():
    """Restores all versions. Files restored without a message must be correct."""
    wrong, incomplete = [], False
    for version in sorted(os.listdir(VERSIONS)):
        out = COPY + "-restored"
        shutil.rmtree(out, ignore_errors=True)
        run = varve("restore", COPY, f"s/{version}", out)
        told = run.stderr.decode(errors="replace")
        incomplete = incomplete or run.returncode != 0
        for folder, _, names in os.walk(os.path.join(VERSIONS, version)):
            for name in names:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, os.path.join(VERSIONS, version))
                copy = os.path.join(out, relative)
                if not os.path.exists(copy):
                    if run.returncode == 0:
                        wrong.append(f"{version}/{relative} is missing")
                    continue
                with open(path, "rb") as file, open(copy, "rb") as other:
                    same = file.read() == other.read()
                if not same and (run.returncode == 0 or relative not in told):
                    wrong.append(f"{version}/{relative}")
    return wrong, incomplete


def wrong_again():
    """Stores TREE once more. Returns what is wrong with the new version."""
    out = COPY + "-restored"
    shutil.rmtree(out, ignore_errors=True)
    for arguments in (["store", COPY, "s/again", TREE], ["restore", COPY, "s/again", out]):
        run = varve(*arguments)
        if run.returncode != 0:
            return [f"{arguments[0]} failed: {run.stderr!r}"]
    run = subprocess.run(["diff", "-r", TREE, out], capture_output=True, check=False)
    return [] if run.returncode == 0 else [f"{run.stdout[:500]!r}"]


def main():
    rng = random.Random(SEED)
    tally = collections.Counter()
    missed, wrong = [], []
    for number in range(COUNT):
        shutil.rmtree(COPY, ignore_errors=True)
        shutil.copytree(REPO, COPY)
        path = rng.choice(targets())
        kind = KINDS[number % len(KINDS)]
        image = damaged(kind, path, rng)
        if image is None:
            os.unlink(path)
        else:
            with open(path, "wb") as file:
                file.write(image)
        what = f"{number}: {kind} {os.path.relpath(path, COPY)}"
        try:
            check = varve("check", "--read-data", COPY)
            bad, incomplete = wrong_bytes()
        except ChildProcessError as error:
            sys.exit(f"FAILED: {what}: {error}")
        wrong += [f"{what}: {one}" for one in bad]
        if check.returncode != 0:
            tally["found"] += 1
        elif path.endswith("data.mdb") and not incomplete and not bad:
            tally["unused"] += 1  # An unused page of the catalog.
        elif is_hint(path) and not incomplete:
            tally["hints"] += 1
            wrong += [f"{what}: stored again, {one}" for one in wrong_again()]
        else:
            tally["missed"] += 1
            missed.append(what)
    shutil.rmtree(COPY, ignore_errors=True)
    print(f"{COUNT} damages: {tally['found']} found, {tally['unused']} in unused pages of the "
          f"catalog, {tally['hints']} in files without data, {tally['missed']} missed, "
          f"{len(wrong)} wrong files")
    for what in missed:
        print(f"missed: {what}")
    if wrong:
        sys.exit("FAILED: wrong bytes: " + "; ".join(wrong[:10]))
    if tally["missed"] * 100 > tally["found"] + tally["missed"]:
        sys.exit("FAILED: fewer than 99 % were found")


if __name__ == "__main__":
    main()
