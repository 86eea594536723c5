# SPDX-License-Identifier: Apache-2.0
"""Decodes labels, manifests and containers, by docs/FORMAT.md alone; § are its sections. Never writes."""
import array
import bisect
import functools
import hashlib
import itertools
import os
import re
import shutil
import stat
import struct
import subprocess
import sys

from xxh3 import MASK, le, xxh3

try:
    import zstandard
except ImportError:
    zstandard = None

ID_MAX, SIZE_MAX = (1 << 32) - 1, (1 << 63) - 1
BLOCK_MAX, CONTAINER_MAX, PAGE_MAX, VALUE_MAX = 131072, 4 << 20, 1 << 20, 1 << 30
report = print  # takes the text of a problem, and counts=False where it may be none


class Damage(Exception):
    """Bytes that break a rule of FORMAT.md, or that cannot be read."""


def need(condition, text):
    if not condition:
        raise Damage(text)


def show(name):
    """Returns text for a terminal: control characters and bytes that are not UTF-8 are escaped."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# ---- Files, compression, numbers ----
def read(path, at=0, count=None):
    """Returns bytes of a regular file; without a count, its size."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            need(stat.S_ISREG(status.st_mode), "%s is no regular file" % path)
            if count is None:
                return status.st_size
            data = os.pread(file.fileno(), min(count, max(status.st_size - at, 0)), at)
    except OSError as error:
        raise Damage("%s: %s" % (path, error.strerror))
    need(len(data) == count, "%s ends too early" % path)
    return data


def numbered(folder, suffix=""):
    """Returns number -> path of the files or folders NNNNNNNN and suffix."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return {int(name[:8], 16): os.path.join(folder, name) for name in names
            if re.fullmatch("[0-9a-f]{8}" + re.escape(suffix), name)}


def decode(path, at, size, raw, codec, check):
    """Returns the raw bytes of a frame or a block (§4, §9)."""
    where = "%s: the data at byte %d" % (path, at)
    need(0 < size <= raw <= BLOCK_MAX and codec == (size < raw), where + " has wrong sizes")
    data = read(path, at, size)
    need(xxh3(data) == check, where + " has a wrong checksum")
    if codec and zstandard:
        try:
            data = zstandard.ZstdDecompressor().stream_reader(data).read(raw + 1)
        except zstandard.ZstdError:
            data = b""
    elif codec:
        program = shutil.which("zstd") or sys.exit("varve-read: install zstd, or the Python module zstandard")
        with open(os.memfd_create("stored"), "w+b", buffering=0) as source:
            source.write(data)
            source.seek(0)
            with subprocess.Popen([program, "-dcq"], stdin=source, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as process:
                data = process.stdout.read(raw + 1)
                process.kill()
    need(len(data) == raw, where + " does not decompress to its size")
    return data


def good_name(name):
    return 0 < len(name) < 256 and name not in (b".", b"..") and b"/" not in name and b"\0" not in name


class Cursor:
    """Reads the bytes of an object from front to back, never beyond their end."""
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        need(count <= len(self.data) - self.at, "an object ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self, most=MASK):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
        need(byte < 128 and value <= most, "a number is too large")
        return value

    def svarint(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def text(self, most):
        return self.take(self.varint(most))

    def name(self, previous):
        """Returns a name that shares bytes with the previous one and comes after it."""
        name = previous[:self.varint(len(previous))] + self.text(255)
        need(previous < name and good_name(name), "a name is not allowed: " + show(name))
        return name


# ---- Manifests and labels (§9) ----
class Section:
    """A manifest, the first part of labels, or an update."""
    def __init__(self, path, at, kind, series, version):
        head = read(path, at, 64)
        magic, form, *names, _, size, self.count, _, zero, check = struct.unpack("<IHHIIQQQQQQ", head)
        need(magic == 0x4E4D5656 and check == xxh3(head[:56]), "%s: no header at byte %d" % (path, at))
        need(form in (1, 2) and not zero, "%s: its format is unknown to this program" % path)
        need(names == [kind, series, version], "%s: it belongs to another place" % path)
        self.path, self.start, self.end = path, at + 64, at + 64 + size

    @functools.lru_cache(128)  # of at most 128 KiB
    def block(self, at):
        """Returns the raw bytes of a block."""
        size, raw, codec, check = struct.unpack("<IIIQ", read(self.path, at, 20))
        need(at + 20 + size <= self.end, "%s: no block at byte %d" % (self.path, at))
        return decode(self.path, at + 20, size, raw, codec, check)

    def records(self, lost=None, place=None):
        """Yields the type, the key, the value and the place of each record, from a place on. Calls `lost`
        for damaged blocks and goes on behind them; without it, raises Damage."""
        (following, skip), count, pieces = place or (self.start, 0), 0, []
        while following < self.end:
            at, following = following, following + 20 + le(read(self.path, following, 4), 0, 4)
            try:
                cursor, skip = Cursor(self.block(at), skip), 0
                while cursor.at < len(cursor.data):
                    here, kind, key = (at, cursor.at), cursor.take(1)[0], cursor.text(255)
                    first = pieces[0] if pieces else (kind & 0x3F, key, here)
                    pieces = (pieces or [first]) + [cursor.text(BLOCK_MAX)]
                    need(first[:2] == (kind & 0x3F, key) and (kind & 0x40 > 0) == (len(pieces) > 2)
                         and sum(map(len, pieces)) <= VALUE_MAX, "%s: records are mixed up" % self.path)
                    count += 1
                    if not kind & 0x80:
                        value, pieces = b"".join(pieces[1:]), []
                        yield (*first[:2], value, first[2])
            except Damage as error:
                if not lost:
                    raise
                lost(error)
                count, pieces = self.count, []
        need(following == self.end and (place or count >= self.count) and not pieces,
             "%s: records are missing" % self.path)


# ---- Series: trees of directories (§5, §6, §7) ----
def read_runs(cursor, base, runs_max=PAGE_MAX):
    """Yields (first chunk id, number of chunks or 0 for a hole, bytes) of each run of a recipe."""
    for _ in range(cursor.varint(runs_max)):
        count = cursor.varint(ID_MAX)
        first = base + cursor.svarint() & MASK if count else base
        size = cursor.varint(SIZE_MAX)
        need(size >= max(count, 1) and (not count or size <= count * BLOCK_MAX
                                        and (first & ID_MAX) + count <= 1 << 32), "a run is wrong")
        base = first + count & MASK
        yield first, count, size


class Entry:
    """An entry of a directory. The class itself is what the first entry of a page follows."""
    name, mode, uid, gid, mtime, xattrs, base, node = b"", 0, 0, 0, 0, {}, 0, 0

    def __init__(self, cursor, last, is_root=False):
        flags = cursor.take(1)[0]
        need(not flags & 0x80 and flags & 0x50 != 0x50, "an entry has unknown flags")
        self.name = cursor.take(2)[2:] if is_root else cursor.name(last.name)
        self.mode = last.mode if flags & 1 else cursor.varint(0o177777)
        self.uid, self.gid = (last.uid, last.gid) if flags & 2 else (cursor.varint(ID_MAX), cursor.varint(ID_MAX))
        seconds = (last.mtime // 10**9 + cursor.svarint() + (1 << 63) & MASK) - (1 << 63)
        self.mtime = seconds * 10**9 + (0 if flags & 4 else le(cursor.take(4), 0))
        need(seconds == self.mtime // 10**9, "nanoseconds are out of range")
        self.names, self.group = (cursor.varint(ID_MAX), cursor.varint(SIZE_MAX)) if flags & 8 else (1, 0)
        self.xattrs = last.xattrs if flags & 0x40 else {}
        for _ in range(cursor.varint(PAGE_MAX) if flags & 0x10 else 0):
            key = cursor.text(255)
            need(key and b"\0" not in key, "the name of an attribute is not allowed")
            self.xattrs[key] = cursor.text(65536)
        self.base, self.node, kind = last.base, last.node, stat.S_IFMT(self.mode)
        self.kind, self.below, self.size, self.device, self.target, self.runs = kind, 0, 0, 0, b"", None
        if kind == stat.S_IFREG and flags & 0x20:
            self.size, _, self.node = cursor.varint(SIZE_MAX), cursor.varint(), last.node + cursor.svarint() & MASK
        elif kind == stat.S_IFREG:
            self.runs = list(read_runs(cursor, last.base))
            self.size = sum(run[2] for run in self.runs)
            self.base = sum(self.runs[-1][:2]) & MASK if self.runs else last.base
        elif kind == stat.S_IFDIR:
            self.node, self.below, _ = last.node + cursor.svarint() & MASK, cursor.varint(), cursor.varint()
        elif kind == stat.S_IFLNK:
            self.target = cursor.text(4095)
            need(self.target and b"\0" not in self.target, "the target of a symlink is not allowed")
        elif kind in (stat.S_IFBLK, stat.S_IFCHR):
            self.device = cursor.varint()
        else:
            need(kind in (stat.S_IFIFO, stat.S_IFSOCK), "the type of an entry is unknown")


class Series:
    """The labels and manifests of one series."""
    def __init__(self, number, folder):
        self.number, self.name, self.versions = number, None, {}  # -> (state, name, ..., root)
        self.manifests = numbered(folder + "/manifests", ".man")
        at, size, kind, path = 0, 1, 2, folder + "/labels"
        try:
            while at < size:
                size, section = read(path), Section(path, at, kind, number, 0)
                self.apply([record[:3] for record in section.records() if record[0] in (1, 2, 10)])
                at, kind = section.end, 3
        except Damage as error:
            # An append that was interrupted is no damage: then nothing follows.
            rest = read(path, at + 1, min(size - at - 1, 1 << 24)) if kind == 3 else b"VVMN"
            report("%s: no sound labels at byte %d (%s); versions that only manifests have are listed too, "
                   "perhaps deleted ones or old names" % (path, at, error), counts=b"VVMN" in rest)
            for version in sorted(set(self.manifests) - set(self.versions)):
                self.apply(self.manifest(version)[2])

    def apply(self, records):
        """Takes over the records of a series and its versions."""
        for kind, key, value in records:
            number, cursor = int.from_bytes(key, "big"), Cursor(value)
            if kind == 1:
                self.name = cursor.text(255)
            elif kind == 10:
                self.versions.pop(number, None)
            else:
                state = cursor.take(1)[0]
                state in (3, 5) and cursor.varint()
                name, _, _, sealed, _, entries, size, _, _, four = cursor.text(255), *(
                    cursor.svarint() if i in (0, 2) else cursor.varint() for i in range(9))
                need(four == 4, "version %d has no root" % number)
                self.versions[number] = state, name, sealed, entries, size, Entry(cursor, Entry, True)

    @functools.lru_cache(None)
    def manifest(self, number):
        """Returns a manifest, the places of its nodes, and its records of the series and the version."""
        section, nodes, others = None, {}, []
        try:
            need(number in self.manifests, "manifest %d of series %d is missing" % (number, self.number))
            section = Section(self.manifests[number], 0, 1, self.number, number)
            for kind, key, value, place in section.records(lost=report):
                if kind in (3, 4):
                    nodes[int.from_bytes(key, "big")] = place
                elif kind in (1, 2):
                    others.append((kind, key, value))
        except Damage as error:
            report(error)
        return section, nodes, others

    def node(self, number):
        section, nodes, _ = self.manifest(number >> 32)
        need(number in nodes, "node %x of series %d is lost" % (number, self.number))
        return next(section.records(place=nodes[number]), (0, b"", b""))[2]

    def entries(self, directory):
        """Yields the entries of a directory, and Damage for parts of it that are lost."""
        # A page has as many entries as the reference to it states, and refers to lower ids. So the tree
        # of forged pages ends, and is no larger than its root says.
        pages, last = [(directory.node, None, directory.below, MASK + 1)], b""
        while pages:
            node, own, total, above = pages.pop()
            try:
                page = self.node(node)
                cursor, found, previous, name, child = Cursor(page, 1), [], Entry, b"", 0
                need(node < above and 0 < len(page) <= PAGE_MAX and page[0] in (1, 2), "a page is wrong")
                for _ in range(cursor.varint(PAGE_MAX)):
                    if page[0] == 1:
                        previous = Entry(cursor, previous)
                        need(previous.kind != stat.S_IFDIR or previous.node < node, "a tree has a cycle")
                        found.append((previous, 1, 1 + previous.below))
                    else:
                        name, child = cursor.name(name), child + cursor.svarint() & MASK
                        count = cursor.varint(ID_MAX)
                        found.append((child, count, count + cursor.varint(ID_MAX), node))
                need(cursor.at == len(page) and sum(f[2] for f in found) == total and all(f[1] for f in found)
                     and own in (None, sum(f[1] for f in found)) and len(pages) < 1 << 16, "a page is wrong")
            except Damage as error:
                yield error
                continue
            pages += reversed(found) if page[0] == 2 else []
            for entry in [f[0] for f in found if page[0] == 1]:
                yield entry if entry.name > last else Damage("a name is out of order: " + show(entry.name))
                last = max(last, entry.name)


# ---- Containers (§1, §3, §4) ----
def search(path, at, size, step):
    """Returns the next place where a container may begin, or the end of the file."""
    while at < size:
        window = read(path, at, min(1 << 20, size - at))
        found = [at + m.start() for m in re.finditer(b"CVRV", window) if not (at + m.start()) % step]
        if found:
            return found[0]
        at += max(len(window) - 3, 1)
    return size


class Store:
    """The containers of a series or of the pool.

    Behind a damaged header, a search finds the next container. That may be a piece of a stored file, say
    of another repository, and nothing tells it from a real one. Its chunks count only with `guess`,
    and only where no other container has them; `guessed` is then set.
    """
    def __init__(self, folder, number, guess=False):
        self.number, self.guess, self.guessed, self.containers, self.runs = number, guess, False, [], []
        for suffix, sub, step in (".seg", "/active", 4096), (".vol", "/volumes", 1):
            for path in numbered(folder + sub, suffix).values():
                try:
                    self.scan(path, step)
                except Damage as error:
                    report(error)
        self.runs.sort()
        self.ends = array.array("Q", itertools.accumulate((min(r[0] + r[1], MASK) for r in self.runs), max))

    def scan(self, path, step):
        """Finds the containers of a file from its start, and searches for more behind damage."""
        size, at, gap, sure = read(path), 0, None, True
        while at < size:
            try:
                fixed = read(path, at, 128)
                (magic, form, _, flags, store, _, frames, chunks, runs, header, data, _,
                 check) = struct.unpack("<IHHIIIIIIIIQQ", fixed[:56])
                need(magic == 0x56525643 and le(fixed, 120) == xxh3(fixed[:120]), "no header")
                need(form == 1 and flags < 2, "a format that is unknown to this program")
                need(store == self.number and header + data <= CONTAINER_MAX and -(-(
                    128 + 24 * frames + 12 * runs + 35 * chunks) // 4096) == -(-header // 4096), "a wrong header")
            except Damage as error:
                gap, sure, at = gap or (at, error), False, search(path, at + step, size, step)
                continue
            if gap:
                report("%s: no container at byte %d (%s); continues at byte %d" % (path, *gap, at))
            try:
                head = read(path, at, header)
                need(check == xxh3(head[128:]), "its tables have a wrong checksum")
                found = [*struct.iter_unpack("<QI", head[128 + 24 * frames:][:12 * runs])]
                starts = itertools.accumulate((run[1] for run in found), initial=0)
                need(sum(run[1] for run in found) == chunks and 128 + 24 * frames + 12 * runs + 35 * chunks <= header
                     and all((run[0] & ID_MAX) + run[1] <= 1 << 32 for run in found), "its tables differ")
                self.runs += [(*run, len(self.containers), start) for run, start in zip(found, starts)]
                self.containers.append((path, at, header, frames, runs, chunks, sure))
            except Damage as error:
                report("%s: the container at byte %d is damaged: %s" % (path, at, error))
            at, gap = -(-(at + header + data) // step) * step, None
        if gap:
            report("%s: no container at byte %d (%s), nor behind it" % (path, *gap), counts=False)

    def copies(self, chunk):
        """Returns (container, place in its table) of each copy of a chunk."""
        at, found = bisect.bisect_right(self.runs, (chunk, MASK)) - 1, []
        while at >= 0 and self.ends[at] > chunk:
            first, count, owner, start = self.runs[at]
            if chunk < first + count:
                found.append((owner, start + chunk - first))
            at -= 1
        need(found, "chunk %x is in no container" % chunk)
        sure = [copy for copy in found if self.containers[copy[0]][6]]
        need(sure or self.guess, "chunk %x is only in a container behind a damaged one (see --guess)" % chunk)
        self.guessed, found = self.guessed or not sure, sure or found
        prints = {self.tables(owner)[1][35 * place:35 * place + 32] for owner, place in found}
        need(len(prints) == 1, "chunk %x has several contents" % chunk)
        return found

    @functools.lru_cache(256)
    def tables(self, owner):
        """Returns a container's frames as (first chunk, place, stored, raw, codec, checksum), its chunk
        table, and the place of each chunk in the raw bytes of all frames."""
        path, at, header, frames, runs, chunks, _ = self.containers[owner]
        head, first, place, found = read(path, at, header), 0, at + header, []
        for count, stored, *rest in struct.iter_unpack("<IIIIQ", head[128:128 + 24 * frames]):
            found.append((first, place, stored, *rest))
            first, place = first + count, place + stored
        need(first == chunks, "%s: the frames of the container at byte %d are wrong" % (path, at))
        table = head[128 + 24 * frames + 12 * runs:]
        starts = itertools.accumulate((le(table, 35 * i + 32, 3) for i in range(chunks)), initial=0)
        return found, table, array.array("Q", starts)

    @functools.lru_cache(512)  # of at most 128 KiB
    def frame(self, owner, index):
        return decode(self.containers[owner][0], *self.tables(owner)[0][index][1:])

    def size(self, chunk):
        owner, place = self.copies(chunk)[0]
        return self.tables(owner)[2][place + 1] - self.tables(owner)[2][place]

    def chunk(self, chunk):
        """Returns the bytes of a chunk, from the first sound copy."""
        for owner, place in self.copies(chunk):
            try:
                frames, table, starts = self.tables(owner)
                index = bisect.bisect_right(frames, (place, MASK)) - 1
                base = starts[frames[index][0]]
                data = self.frame(owner, index)[starts[place] - base:starts[place + 1] - base]
                need(hashlib.sha256(data).digest() == table[35 * place:35 * place + 32],
                     "%s: chunk %x has a wrong fingerprint" % (self.containers[owner][0], chunk))
                return data
            except Damage as error:
                failure = error
        raise failure
