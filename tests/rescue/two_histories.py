#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restores folders that have files of two histories of a repository with the readers of rescue/.

A version that a reader restores with status 0 has the contents of one of the histories. VARVE is the path of the
program. The histories and mixtures are those of tests/fuse/two_histories.py.
"""

import atexit
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEED = int(os.environ.get("VARVE_TEST_SEED", "1"))
MIXTURES = int(os.environ.get("VARVE_TEST_MIXTURES", "2"))
KINDS = os.environ.get("VARVE_TEST_KINDS", "lineage delta lineage+pool pool encrypted").split()
HISTORY = b"another history"
PAGES_BYTES = 60_000
PAGES_VERSIONS = 7

sys.dont_write_bytecode = True


def load_histories(work):
    """Returns the module that makes the histories. It keeps its files in its first argument."""
    path = os.path.join(ROOT, "tests", "fuse", "two_histories.py")
    spec = importlib.util.spec_from_file_location("two_histories", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(spec.origin))  # For the modules beside it.
    spec.loader.exec_module(module)
    sys.argv[1:] = [work]
    return module


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def reader(kind, *args):
    """Runs the reader; returns its status and its messages."""
    program = [os.path.join(ROOT, "rescue", "varve-read.py")]
    if kind == "encrypted":
        program = [os.path.join(ROOT, "rescue", "varve-read-encrypted.py"), "--key-file", os.environ["VARVE_KEY_FILE"]]
    done = subprocess.run([sys.executable, *program, *args], capture_output=True, timeout=60, check=False)
    check(b"Traceback" not in done.stderr, "the reader crashed: " + done.stderr.decode())
    check(done.returncode in (0, 1, 3), f"the reader ended with {done.returncode}: {done.stderr.decode()}")
    return done.returncode, done.stderr


def make_pair(histories, kind, folder):
    """Returns two histories. A version of each refers to chunks of one birth and mark that differ, and another one
    to a directory of the version before it."""
    os.mkdir(folder)
    arguments = ["--encrypt", "--key-file", os.environ["VARVE_KEY_FILE"]] if kind == "encrypted" else [
        "--placement", "lineage" if kind == "delta" else kind]
    pair = histories.Pair(folder, random.Random(SEED), arguments, ["delta=1", "window=1"] if kind == "delta" else [])
    if kind == "delta":
        add_prefixes(histories, pair)
    for repository, files in zip((pair.a, pair.b), pair.trees["s/live"]):
        for version in "s/v4", "other/v3":
            source = tempfile.mkdtemp(dir=folder)
            for name, data in files.items():
                with open(os.path.join(source, name), "wb") as file:
                    file.write(data)
            histories.must("store", "--allow-shrunk", repository, version, source)
            pair.trees.setdefault(version, []).append(files)
        source = tempfile.mkdtemp(dir=folder)
        os.mkdir(os.path.join(source, "kept"))
        for name in "first", "kept/1", "kept/2", "second":  # So few that both histories number their pages alike.
            with open(os.path.join(source, name + os.path.basename(repository)), "wb") as file:
                file.write(pair.rand.randbytes(histories.FILE_BYTES))
        for version, gone in ("s/v5", "first"), ("s/v6", "second"):
            histories.must("store", "--allow-shrunk", repository, version, source)
            pair.trees.setdefault(version, []).append(histories.content(source))
            os.remove(os.path.join(source, gone + os.path.basename(repository)))
    return pair


def add_prefixes(histories, pair):
    """Adds versions that differ by a few bytes, so that frames in volumes have prefixes: no such frame is read
    without the frame before it. The histories differ from the second of these versions on."""
    for repository in pair.a, pair.b:
        source = tempfile.mkdtemp(dir=pair.folder)
        pages = bytearray(random.Random(SEED).randbytes(PAGES_BYTES))
        for number in range(1, PAGES_VERSIONS + 1):
            for at in range(500, PAGES_BYTES, 4000):
                pages[at:at + 8] = pair.rand.randbytes(8)
            with open(os.path.join(source, "pages"), "wb") as file:
                file.write(pages)
            version = f"pages/v{number}"
            histories.must("store", repository, version, source)
            pair.trees.setdefault(version, []).append(histories.content(source))
        rows = [json.loads(line) for line in histories.varve("stats", "--delta", "--json", repository).stdout.splitlines()]
        check(sum(row["frames"] for row in rows) > 0, f"no frame has a prefix: {rows}")


def mixtures(pair, kind):
    """Yields the folders of mixtures, with a text: first of whole kinds of files, then of files by chance."""
    for kinds in (".seg", ".vol"), (".man",), (".man", "labels"), (".als",), (".seg", ".vol", ".als"), (
            ".seg", ".vol", ".als", ".man"):
        yield pair.take(lambda name: name.endswith(kinds))[0], f"the second history's {kinds}"
    mixed, _ = pair.take(lambda name: name.endswith((".seg", ".vol")))
    volumes = [os.path.join(top, name) for top, _, names in os.walk(mixed) for name in names if name.endswith(".vol")]
    for path in sorted(volumes)[-1:]:
        os.remove(path)
    yield mixed, "the second history's data without a volume"
    for number in range(3, 8):
        second, first = (True, True) if kind == "lineage" else pair.rand.choice(((True, False), (False, True)))
        if second:
            yield pair.take(lambda name: name.endswith(f"{number}.man"))[0], f"the second history's manifests {number}"
        if first:
            yield pair.take(lambda name: not name.endswith(f"{number}.man"))[0], f"the first one's manifests {number}"
    for turn in range(MIXTURES):
        mixed, taken = pair.mix(pair.rand.choice((0.1, 0.3, 0.5, 0.7, 0.9)))
        yield mixed, f"mixture {turn} of the files {taken}"


def wrong(histories, pair, kind, repository):
    """Returns the versions that have wrong contents after status 0, and how many there are of each outcome."""
    faults, whole, told = [], 0, 0
    for version, trees in pair.trees.items():
        out = os.path.join(pair.folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        status, messages = reader(kind, repository, "restore", version, out)
        told += HISTORY in messages
        if status == 0:
            whole += 1
            if histories.content(out) not in trees:
                faults.append(version)
    return faults, whole, told


def check_marks(histories, pair, kind):
    """Restores single files while a data file of the other history is missing: then no digest tells, but marks do."""
    out, is_data = os.path.join(pair.folder, "out"), (lambda name: name.endswith((".seg", ".vol")))
    for lost in [name for _, _, names in os.walk(pair.b + "/series") for name in names if is_data(name)]:
        mixed, _ = pair.take(is_data)
        for top, _, names in os.walk(mixed + "/series"):
            if lost in names:
                os.remove(os.path.join(top, lost))
        for path, data in pair.trees["s/v5"][0].items():
            shutil.rmtree(out, ignore_errors=True)
            status, _ = reader(kind, mixed, "restore", "s/v5", out, path)
            check(status != 0 or histories.content(out) == {path: data}, f"{kind}, without {lost}: {path} is wrong")


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("skipped: needs root and /dev/fuse")
        sys.exit(77)
    work = tempfile.mkdtemp(prefix="varve-rescue.", dir=os.environ.get("VARVE_TEST_TMP", "/var/tmp"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.environ["VARVE"] = os.path.abspath(os.environ["VARVE"])
    histories = load_histories(work)
    print("seed %d" % SEED)
    for kind in KINDS:
        os.environ.pop("VARVE_KEY_FILE", None)
        if kind == "encrypted":
            try:
                import cryptography  # noqa: F401
            except ImportError as error:
                print("skipped: %s" % error)
                if KINDS == [kind]:
                    sys.exit(77)
                continue
            os.environ["VARVE_KEY_FILE"] = os.path.join(work, "key")
            with open(os.open(work + "/key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(os.urandom(32))
        pair = make_pair(histories, kind, os.path.join(work, kind))
        for repository in pair.a, pair.b:
            faults, whole, told = wrong(histories, pair, kind, repository)
            missing = repository == pair.a  # The second history alone has more/v2.
            check(not faults and not told and whole == len(pair.trees) - missing,
                  f"{kind}: a history is not restored: {faults}")
        restored = refused = 0
        for mixed, what in mixtures(pair, kind):
            faults, whole, told = wrong(histories, pair, kind, mixed)
            check(not faults, f"{kind}: {what}: {faults} have wrong contents")
            restored += whole
            refused += told
        check(restored and refused, f"{kind}: {restored} versions restored, {refused} refused: nothing is tested")
        if kind in ("lineage", "delta", "encrypted"):
            check_marks(histories, pair, kind)
        print(f"ok - {kind}: {restored} versions restored, {refused} with chunks of another history", flush=True)


if __name__ == "__main__":
    main()
