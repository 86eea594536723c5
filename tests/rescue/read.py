#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restores golden objects and fresh repositories with rescue/varve-read.py, and compares with Varve.

No repository has a catalog while the reader reads it. VARVE is the path of the program.
"""

import atexit
import hashlib
import importlib.util
import os
import random
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
READER = os.path.join(ROOT, "rescue", "varve-read.py")
GOLDEN = os.path.join(ROOT, "tests", "golden")
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("varve_read", READER)
varve_read = importlib.util.module_from_spec(spec)
spec.loader.exec_module(varve_read)

SEED = int(os.environ.get("VARVE_TEST_SEED", "1"))
ID_NONE = 0xFFFFFFFF  # the id of an ACL entry that names nobody
FLIPS = int(os.environ.get("VARVE_TEST_FLIPS", "25"))


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def ok(text):
    print("ok - " + text, flush=True)


def varve(*args):
    done = subprocess.run([os.environ["VARVE"], *args], capture_output=True)
    check(done.returncode == 0, "varve %s: %s" % (" ".join(args), done.stderr.decode()))


def reader(*args, statuses=(0,)):
    """Runs the reader; returns its status, its output and its messages."""
    done = subprocess.run([sys.executable, READER, *args], capture_output=True, timeout=60)
    check(b"Traceback" not in done.stderr, "the reader crashed: " + done.stderr.decode())
    check(done.returncode in statuses, "reader %s ended with %d: %s" % (
        args, done.returncode, done.stderr.decode()))
    return done.returncode, done.stdout, done.stderr


def differences(a, b):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/fuse/tree_state.py"), a, b],
                          capture_output=True)
    return done.stdout.decode() if done.returncode else ""


def fresh(name):
    shutil.rmtree(name, ignore_errors=True)
    return name


# ---- Trees. ----

def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def make_tree(top, rng, size, files=120):
    for i in range(files):
        write(os.fsencode(top) + b"/many/file-%03d" % i, rng.randbytes(i * 7))
    write(top + "/random", rng.randbytes(size))
    write(top + "/text", b"".join(b"line %d\n" % i for i in range(size // 12)))
    write(top + "/empty", b"")
    write(os.fsencode(top) + b"/odd \xff\n\xfe", b"odd")
    with open(top + "/sparse", "wb") as file:
        for at in range(1 << 20, 17 << 20, 1 << 20):  # enough runs for a recipe on its own
            file.seek(at)
            file.write(rng.randbytes(3000))
        file.truncate(20 << 20)
    write(top + "/deep" + "/d" * 30 + "/leaf", b"deep")
    os.link(top + "/random", top + "/many/hard")
    os.link(top + "/random", top + "/zlast")
    os.symlink("/etc/passwd", top + "/absolute")
    os.symlink("many/hard", top + "/relative")
    os.mkfifo(top + "/fifo")
    os.mknod(top + "/null", stat.S_IFCHR | 0o620, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(top + "/socket")
    os.setxattr(top + "/random", "user.small", b"value")
    os.setxattr(top + "/text", "user.large", b"v" * 3000)
    os.setxattr(top + "/many", "user.folder", b"\0\1")
    os.setxattr(top + "/relative", "trusted.link", b"link", follow_symlinks=False)
    os.chown(top + "/text", 1000, 1001)
    os.chown(top + "/absolute", 5, 6, follow_symlinks=False)
    os.chmod(top + "/text", 0o4751)
    os.chmod(top + "/many", 0o2750)
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *rule) for rule in (
        (1, 6, ID_NONE), (2, 6, 1000), (4, 4, ID_NONE), (16, 6, ID_NONE), (32, 0, ID_NONE)))
    os.setxattr(top + "/empty", "system.posix_acl_access", acl)
    os.setxattr(top + "/empty", "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0))
    os.utime(top + "/text", ns=(1, -1234567891))
    os.utime(top + "/many", ns=(1, 10**18 + 7))
    os.utime(top + "/relative", ns=(1, 1), follow_symlinks=False)


def change_tree(top, rng):
    """Makes an insertion, and changes and removes some small files."""
    with open(top + "/random", "rb+") as file:
        data = file.read()
        at = rng.randrange(len(data))
        file.seek(at)
        file.write(rng.randbytes(300) + data[at:])
    for name in sorted(os.listdir(top + "/many"))[::9]:
        if name.startswith("file"):
            os.unlink(top + "/many/" + name)
            write(top + "/many/" + name + "+", rng.randbytes(500))


# ---- Tests. ----

def test_golden():
    def golden(name):
        with open(os.path.join(GOLDEN, name), "rb") as file:
            return file.read()

    body, _, checksum = golden("superblock-1.txt").rpartition(b"checksum = ")
    check(checksum == b"%016x\n" % varve_read.xxh3(body), "the checksum of the golden superblock")
    page = golden("leaf-page-1.bin")
    cursor, entries = varve_read.Cursor(page, 1), [varve_read.Entry]
    for _ in range(cursor.varint()):
        entries.append(varve_read.Entry(cursor, entries[-1]))
    check(cursor.at == len(page) and [e.name for e in entries[1:]] == [
        b"block", b"character", b"directory", b"empty", b"fifo", b"file", b"file2", b"linked", b"socket",
        b"symlink"], "the golden leaf page")
    check(entries[5].mtime == -1 and entries[8].names == 3 and entries[10].target == b"../some/where"
          and entries[7].xattrs == {b"security.capability": b"\0\1\2", b"user.note": b""}
          and entries[6].size == 1056681, "the entries of the golden leaf page")
    recipe = golden("recipe-1.bin")
    cursor = varve_read.Cursor(recipe, 1)
    runs = list(varve_read.read_runs(cursor, 0))
    check(cursor.at == len(recipe) and runs[:2] == [(1 << 32, 1, 2048), ((1 << 32) + 1, 0, 4096)]
          and len(runs) == 24, "the golden recipe")
    *labels, _ = varve_read.records(os.path.join(GOLDEN, "labels-1.bin"), 0, 2, 3, 0)
    check(max(len(value) for _, _, value in labels) > 131072, "the golden labels")
    container = golden("container-1.bin")
    write("golden/active/00000009.seg", container)
    store = varve_read.Store("golden", struct.unpack_from("<I", container, 12)[0])
    check([run[:2] for runs in store.runs.values() for run in runs] == [(1 << 32, 2), ((1 << 34) + 7, 1)],
          "the golden container")
    [store.frame(*frame) for *_, frame in store.table(0)]
    write("prefixes/volumes/00000001.vol", golden("container-3.bin"))
    texts = [varve_read.Store.frame(*frame) for *_, frame in varve_read.Store("prefixes", 2).table(0)]
    check(len(set(texts)) == 3 and texts[2][1500:1520] == b"one more of the same", "the golden prefixes")
    ok("the golden objects")


def tree_digest(top):
    """Returns a digest of all that a restore must keep of a tree."""
    digest, links = hashlib.sha256(), {}
    for folder, folders, names in os.walk(os.fsencode(top)):
        folders.sort()
        for name in sorted(names + folders + [b"."]):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            group = links.setdefault(status.st_ino, path) if stat.S_ISREG(status.st_mode) else b""
            digest.update(repr((
                path, status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_rdev, group,
                [(key, os.getxattr(path, key, follow_symlinks=False))
                 for key in sorted(os.listxattr(path, follow_symlinks=False)) if key != "security.selinux"],
                os.readlink(path) if stat.S_ISLNK(status.st_mode) else b"")).encode())
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()


def test_golden_repositories():
    """Restores repositories that an earlier Varve wrote, with the reader and with today's Varve."""
    with open(os.path.join(GOLDEN, "repositories-1.txt")) as file:
        wanted = [line.split() for line in file if not line.startswith("#")]
    for name, version, digest in wanted:
        if not os.path.isdir(name):
            with tarfile.open(os.path.join(GOLDEN, name + ".tar.gz")) as archive:
                archive.extractall(name)
            shutil.copytree(name, name + ".whole")
            varve("repair", "--yes", name + ".whole")
        reader(name, "restore", version, fresh("restored"))
        check(tree_digest("restored") == digest, "the reader restores other data of %s, %s" % (name, version))
        varve("-q", "restore", name + ".whole", version, fresh("restored"))
        check(tree_digest("restored") == digest, "Varve restores other data of %s, %s" % (name, version))
        ok("the golden repository %s, version %s" % (name, version))


def hide_catalog(repo):
    os.rename(repo + "/catalog", repo + ".catalog")


def show_catalog(repo):
    os.rename(repo + ".catalog", repo + "/catalog")


def compare(repo, *versions):
    hide_catalog(repo)
    for version in versions:
        reader(repo, "restore", version, fresh("by-reader"))
        problems = differences("by-reader", "by-varve-" + version.replace("/", "-"))
        check(not problems, "%s, %s differs:\n%s" % (repo, version, problems))
    show_catalog(repo)


def test_placements(rng):
    for placement, compression in (("lineage", "none"), ("lineage", "zstd:3"), ("lineage+pool", "zstd:1"),
                                   ("pool", "zstd:9"), ("pool", "none")):
        repo = fresh("repo")
        shutil.rmtree("tree", ignore_errors=True)
        make_tree("tree", rng, 600000)
        varve("init", "--placement", placement, "--compression", compression, repo)
        varve("-q", "store", repo, "b/w1", "tree")
        for number in 1, 2, 3:
            varve("-q", "store", repo, "a/v%d" % number, "tree")
            change_tree("tree", rng)
        varve("-q", "store", repo, "b/w2", "tree")
        for version in "a/v1", "a/v3", "b/w2":
            varve("-q", "restore", repo, version, fresh("by-varve-" + version.replace("/", "-")))
        compare(repo, "a/v1", "b/w2")
        varve("-q", "rm", repo, "a/v2", "b/w1")
        varve("-q", "arrange", "--parity=5", repo)
        compare(repo, "a/v1", "a/v3", "b/w2")
        out = reader(repo, "ls")[1].decode().splitlines()
        check(sorted(line.split(":")[0] for line in out) == ["a/v1", "a/v3", "b/w2"], "the list of versions")
        ok("%s with %s, after deletion and arranging" % (placement, compression))


def test_aliases():
    """Versions with the same files, stored with an index that does not find all of them."""
    repo, rng = fresh("aliases"), random.Random(3)
    shutil.rmtree("tree", ignore_errors=True)
    os.mkdir("tree")
    parts = [rng.randbytes(rng.randrange(20000, 400000)) for _ in range(40)]
    varve("init", "--placement=pool", "--pool-index=zero-chunk:8", repo)
    for version in "a/v1", "b/v1", "c/v1":
        shutil.rmtree("tree")
        os.mkdir("tree")
        for i, part in enumerate(parts):
            at = rng.randrange(len(part))
            write("tree/%d-%d" % (rng.randrange(10), i),
                  part if rng.random() < 0.6 else part[:at] + rng.randbytes(900) + part[at:])
        varve("-q", "store", "--no-arrange", repo, version, "tree")
    varve("-q", "arrange", repo)
    check([n for n in os.listdir(repo + "/pool") if n.startswith("aliases-")], "no aliases were made")
    varve("-q", "rm", "--no-arrange", repo, "a/v1")
    for version in "b/v1", "c/v1":
        varve("-q", "restore", repo, version, fresh("by-varve-" + version.replace("/", "-")))
    compare(repo, "b/v1", "c/v1")
    path = repo + "/pool/" + [n for n in os.listdir(repo + "/pool") if n.startswith("aliases-")][0]
    with open(path, "rb") as file:
        sound = bytearray(file.read())
    sound[60] ^= 1
    write(path, sound)
    hide_catalog(repo)
    check(reader(repo, "restore", "c/v1", fresh("by-reader"), statuses=(0, 1, 3))[0], "a damaged file of aliases")
    show_catalog(repo)
    ok("aliases of the pool")


def test_paths():
    repo = "repo"
    reader(repo, "restore", "a/latest", fresh("part"), "many/hard", "deep/d", "zlast")
    check(sorted(os.listdir("part")) == ["deep", "many", "zlast"] and os.listdir("part/many") == ["hard"]
          and os.path.samefile("part/many/hard", "part/zlast"), "a restore of some paths")
    check(b"leaf" in reader(repo, "ls", "a/v3", "deep" + "/d" * 30)[1], "a list of a directory")
    reader(repo, "restore", "a/v3", fresh("part"), "missing", statuses=(3,))
    reader(repo, "restore", "a/v2", fresh("part"), statuses=(1,))
    reader(repo, "restore", "a/v3", "tree", statuses=(1,))
    reader("tree", "ls", statuses=(10,))
    reader(repo, "copy", statuses=(2,))
    ok("paths, and mistakes")


def test_flips(rng):
    """Flips random bytes. A restore without messages must be right, and another may only have holes."""
    shutil.rmtree("tree", ignore_errors=True)
    make_tree("tree", rng, 40000, 50)
    varve("init", "--placement", rng.choice(("lineage", "lineage+pool", "pool")), fresh("small"))
    for number in 1, 2, 3, 4:
        varve("-q", "store", "small", "a/v%d" % number, "tree")
        change_tree("tree", rng)
    varve("-q", "restore", "small", "a/v4", fresh("whole"))
    files = [os.path.join(folder, name) for folder, _, names in os.walk("small") for name in names
             if name.endswith((".seg", ".vol", ".man", "labels", "varve.repo"))]
    shutil.rmtree("small/catalog")
    silent = 0
    for _ in range(FLIPS):
        path = rng.choice(files)
        with open(path, "rb") as file:
            sound = file.read()
        bad = bytearray(sound)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            del bad[rng.randrange(len(bad)):]
        write(path, bad)
        status, _, messages = reader("small", "restore", "a/v4", fresh("flipped"), statuses=(0, 1, 3))
        if status == 0:
            silent += 1
            check(not differences("whole", "flipped"), "a flip in %s had wrong results silently" % path)
        for folder, _, names in os.walk("flipped"):
            for name in names:
                got = os.path.join(folder, name)
                if os.path.isfile(got) and not os.path.islink(got):
                    compare_holes(got, got.replace("flipped", "whole", 1), messages)
        write(path, sound)
    check(silent < FLIPS, "no flip was noticed")
    os.unlink("small/series/00000001/labels")
    reader("small", "restore", "a/v4", fresh("flipped"), statuses=(3,))
    check(not differences("whole", "flipped"), "a restore without labels")
    ok("%d flips: %d did not matter, the others were reported" % (FLIPS, silent))


def test_search(rng):
    """Stores a segment of another repository and damages the header before it: the reader must not take
    the stored containers for its own."""
    write("inner-tree/file", rng.randbytes(100000))
    varve("init", "--compression", "none", "inner")
    varve("-q", "store", "inner", "s/v", "inner-tree")
    write("outer-tree/z-behind", rng.randbytes(6000000))  # Has a container of its own.
    shutil.copy("inner/series/00000001/active/00000000.seg", "outer-tree/segment")
    varve("init", "--compression", "none", "outer")
    varve("-q", "store", "outer", "s/v", "outer-tree")
    reader("outer", "restore", "s/v", fresh("found"))
    with open("outer/series/00000001/active/00000000.seg", "rb+") as file:
        file.seek(20)
        file.write(b"\xff")
        file.seek(0, os.SEEK_END)
        with open("outer/series/00000001/active/00000001.seg", "rb") as behind:
            file.write(behind.read())
    os.unlink("outer/series/00000001/active/00000001.seg")
    _, _, messages = reader("outer", "restore", "s/v", fresh("found"), statuses=(3,))
    with open("found/segment", "rb") as file:
        check(not any(file.read()) and b"segment: " in messages, "a stored container was believed")
    _, _, messages = reader("outer", "restore", "--guess", "s/v", fresh("found"), statuses=(3,))
    check(b"z-behind: may be wrong" in messages, "a guess is not named")
    with open("found/segment", "rb") as file:
        check(not any(file.read()) and b"belongs to another history" in messages, "a guess has another mark")
    ok("a container inside of a stored file is not believed")


def compare_holes(got, whole, messages):
    with open(got, "rb") as a, open(whole, "rb") as b:
        a, b = a.read(), b.read()
    if a != b:
        check(len(a) == len(b) and all(x in (y, 0) for x, y in zip(a, b)), got + " has wrong bytes")
        # The message about a hard-linked file has the first of its names.
        names = ["hard", "random", "zlast"] if os.stat(got).st_nlink > 1 else [os.path.basename(got)]
        check(any(varve_read.show(name).encode() + b": " in messages for name in names),
              got + ": no message names the hole")


def text(data):
    return bytes([len(data)]) + data


def forge(pages):
    """Makes a repository without labels from leaf and inner pages; the last one is the root's."""
    shutil.rmtree("forged", ignore_errors=True)
    records = b"".join(b"\3" + text(struct.pack(">II", 1, i)) + text(page)
                       for i, (page, _) in enumerate(pages))
    root = b"\4\6\0\0" + b"\xed\x83\1" + b"\0" + b"\x80\x80\x80\x80\x20"[:0]
    node = (1 << 32 | len(pages) - 1) << 1
    root += varint(node) + varint(pages[-1][1]) + b"\0"
    version = b"\2" + text(b"v") + b"\0\0\0\0" + b"\0\0\0\0" + root
    records += b"\1\0" + text(text(b"s") + b"\0\0\2") + b"\2" + text(struct.pack(">I", 1)) + text(version)
    block = struct.pack("<IIIQ", len(records), len(records), 0, varve_read.xxh3(records)) + records
    header = struct.pack("<IHHIIQQQQQ", 0x4E4D5656, 1, 1, 1, 1, 1, len(block), len(pages) + 2, 0, 0)
    write("forged/series/00000001/manifests/00000001.man", header + struct.pack("<Q", varve_read.xxh3(header)) + block)


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def leaf(*entries):
    return b"\1" + varint(len(entries)) + b"".join(entries)


def symlink(name, target):
    return b"\6\0" + text(name) + varint(0o120777) + b"\0" + text(target)


def test_hostile():
    """Forged names and links; nothing may appear outside of the destination."""
    outside = os.path.abspath("outside")
    os.makedirs(outside)
    directory = b"\6\0%s" + varint(0o40755) + b"\0" + varint(1 << 33) + b"\1\0"
    cases = [[(leaf(symlink(name, b"x")), 1)] for name in (b"..", b".", b"a/b", b"../outside/x", b"\0", b"")]
    inner = symlink(b"x", b"y")
    # A link and a directory of the same name, in one page and in two.
    both = [symlink(b"l", outside.encode()), directory % text(b"l")]
    cases.append([(leaf(inner), 1), (leaf(*both), 3)])
    refers = b"\2\2" + b"\0" + text(b"l") + varint((1 << 32 | 1) << 1) + b"\1\0" + b"\1\0" + b"\2" + b"\1\1"
    cases.append([(leaf(inner), 1), (leaf(both[0]), 1), (leaf(both[1]), 2), (refers, 3)])
    # A page that refers to itself, and one that states a wrong number.
    cases.append([(leaf(directory % text(b"d")), 2)])
    cases.append([(leaf(inner), 1), (leaf(directory % text(b"d")), 5)])
    for number, pages in enumerate(cases):
        forge(pages)
        status, _, _ = reader("forged", "restore", "s/v", fresh("dest"), statuses=(3,))
        check(not os.listdir(outside) and not os.path.exists("x"), "case %d wrote outside" % number)
    forge([(leaf(symlink(b"good", b"x")), 1)])
    reader("forged", "restore", "s/v", fresh("dest"), statuses=(3,))  # labels and varve.repo are missing
    check(os.readlink("dest/good") == "x", "the forged repository is wrong itself")
    ok("hostile names, links and pages")


def main():
    if os.geteuid() != 0:
        print("skipped: needs root (owners, devices)")
        sys.exit(77)
    os.environ["VARVE"] = os.path.abspath(os.environ["VARVE"])
    os.environ["LC_ALL"] = "C.UTF-8"
    work = tempfile.mkdtemp(prefix="varve-rescue.", dir=os.environ.get("VARVE_TEST_TMP", "/var/tmp"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.chdir(work)
    rng = random.Random(SEED)
    print("seed %d" % SEED)
    varve_read.problem = lambda text, counts=True: check(False, str(text))
    test_golden()
    test_golden_repositories()
    test_placements(rng)
    test_paths()
    test_aliases()
    test_flips(rng)
    test_search(rng)
    test_hostile()


if __name__ == "__main__":
    main()
