#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restores fresh encrypted repositories with rescue/varve-read-encrypted.py, and compares with the sources.

No repository has a catalog while the reader reads it. VARVE is the path of the program.
"""

import atexit
import os
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
READER = os.path.join(ROOT, "rescue", "varve-read-encrypted.py")
SEED = int(os.environ.get("VARVE_TEST_SEED", "1"))
FLIPS = int(os.environ.get("VARVE_TEST_FLIPS", "25"))
FEW = ("--key-cost", "8M:1:1")  # What a try of the passphrase costs is not under test.


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def ok(text):
    print("ok - " + text, flush=True)


def varve(*args):
    done = subprocess.run([os.environ["VARVE"], "-q", *args], capture_output=True)
    check(done.returncode == 0, "varve %s: %s" % (" ".join(args), done.stderr.decode()))
    return done.stdout


def reader(*args, statuses=(0,), modules=None):
    """Runs the reader; returns its status, its output and its messages."""
    env = dict(os.environ, **({"PYTHONPATH": modules} if modules else {}))
    done = subprocess.run([sys.executable, READER, *args], capture_output=True, timeout=120, env=env)
    check(b"Traceback" not in done.stderr, "the reader crashed: " + done.stderr.decode())
    check(done.returncode in statuses, "reader %s ended with %d: %s" % (
        args, done.returncode, done.stderr.decode()))
    return done.returncode, done.stdout, done.stderr


def fresh(name):
    shutil.rmtree(name, ignore_errors=True)
    return name


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def tree_of(top):
    """Returns name -> content of a tree's files."""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, top)] = file.read()
    return found


def make_source(rng, shared):
    fresh("source")
    for i in range(60):
        write("source/many/file-%03d" % i, rng.randbytes(i * 50))
    write("source/shared", shared)
    write("source/own", rng.randbytes(300000))
    write("source/text", b"the same line again and again\n" * 20000)


def make(rng, cipher, placement):
    """Makes a repository with three versions in two series; returns its folder and the sources."""
    repo, sources, shared = fresh("repo"), {}, rng.randbytes(400000)
    varve("init", "--encrypt", "--cipher", cipher, "--placement", placement, *KEY, *FEW, repo)
    for name in ("s/v1", "t/v1", "s/v2", "s/v3", "s/v4", "s/v5", "s/v6"):
        make_source(rng, shared)
        varve("store", *KEY, repo, name, "source")
        sources[name] = tree_of("source")
    varve("rm", *KEY, repo, "s/v2")
    del sources["s/v2"]
    return repo, sources


def all_fits(repo, sources, *key):
    for name, files in sources.items():
        reader(*key, repo, "restore", name, fresh("out"))
        check(tree_of("out") == files, "%s differs" % name)


def damaged_files(repo):
    return [os.path.join(folder, name) for folder, _, names in os.walk(repo) for name in names
            if name.endswith((".seg", ".vol", ".man", ".als")) or name == "labels"]


def test_every_kind():
    rng = random.Random(SEED)
    for cipher, placement in (("aes-256-gcm", "lineage"), ("chacha20-poly1305", "pool"),
                              ("aes-256-gcm", "lineage+pool")):
        repo, sources = make(rng, cipher, placement)
        code = varve("key", "recovery", *KEY, repo)
        write("keys/code", code.lower().replace(b"-", b" "))
        varve("key", "add", *KEY, "--new-key-file", "keys/file", repo)
        shutil.rmtree(repo + "/catalog")
        all_fits(repo, sources, *KEY)
        all_fits(repo, {"s/v6": sources["s/v6"]}, "--passphrase-file", "keys/code")
        all_fits(repo, {"t/v1": sources["t/v1"]}, "--key-file", "keys/file")
        _, listing, _ = reader(*KEY, repo, "ls")
        check(listing.count(b"sealed") == len(sources), "a listing has other versions: %r" % listing)
        reader("--passphrase-file", "keys/wrong", repo, "ls", statuses=(12,))
        os.rename(repo + "/varve.repo", repo + "/gone")
        _, _, said = reader(*KEY, repo, "ls", statuses=(3,))
        check(b"varve.repo" in said, "no message about a lost superblock")
        os.rename(repo + "/gone", repo + "/varve.repo")
        ok("%s, %s: every version comes back, by a passphrase, a key file and a recovery code" % (cipher, placement))
    return repo, sources


def test_damage(repo, sources):
    rng = random.Random(SEED + 1)
    hidden = 0
    for i in range(FLIPS):
        path = rng.choice(damaged_files(repo))
        with open(path, "rb") as file:
            before = file.read()
        at = rng.randrange(len(before))
        after = before[:at] + bytes([before[at] ^ 1 << rng.randrange(8)]) + before[at + 1:]
        write(path, after)
        name = rng.choice(sorted(sources))
        status, _, said = reader(*KEY, repo, "restore", name, fresh("out"), statuses=(0, 1, 3))
        for file, data in (tree_of("out") if status != 1 else {}).items():
            want = sources[name].get(file)
            check(want is not None and len(want) == len(data), "%s byte %d: %s has another size" % (path, at, file))
            wrong = [k for k in range(len(data)) if data[k] != want[k] and data[k]]
            check(not wrong, "%s byte %d: %s has wrong bytes" % (path, at, file))
            check(data == want or file.encode() in said, "%s byte %d: %s is wrong without a word" % (path, at, file))
        hidden += status == 0
        write(path, before)
    all_fits(repo, {"s/v1": sources["s/v1"]}, *KEY)
    ok("%d flipped bytes give no wrong byte; %d touched nothing that was read" % (FLIPS, hidden))


def test_messages(repo):
    write("none/cryptography/__init__.py", b"raise ImportError('none')\n")
    _, _, said = reader(*KEY, repo, "ls", statuses=(1,), modules="none")
    check(b"python3-cryptography" in said, "no advice about a missing module: %r" % said)
    varve("init", fresh("plain"))
    _, _, said = reader(*KEY, "plain", "ls", statuses=(1,))
    check(b"varve-read.py" in said, "no advice about a plain repository: %r" % said)
    reader("--passphrase-file", "keys/none", repo, "ls", statuses=(1,))
    reader("ls", repo, statuses=(2,))
    ok("a missing module, a plain repository and a missing key are clear errors")


def main():
    global KEY
    try:
        import cryptography  # noqa: F401
        try:
            from cryptography.hazmat.primitives.kdf import argon2  # noqa: F401
        except ImportError:
            import argon2  # noqa: F401
    except ImportError as error:
        print("skipped: %s" % error)
        sys.exit(77)
    top = tempfile.mkdtemp(prefix="varve-rescue-")
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    os.chdir(top)
    os.umask(0o077)
    os.environ["XDG_STATE_HOME"] = os.path.join(top, "state")
    write("keys/pass", b"a few secret words\n")
    write("keys/wrong", b"other words\n")
    write("keys/file", os.urandom(64))
    KEY = ("--passphrase-file", "keys/pass")
    repo, sources = test_every_kind()
    test_damage(repo, sources)
    test_messages(repo)


if __name__ == "__main__":
    main()
