#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Varve repository without Varve and without its catalog. Written from docs/FORMAT.md alone (§).

usage: varve-read.py REPO ls [SERIES/VERSION [PATH...]]
       varve-read.py REPO restore [--guess] SERIES/VERSION DEST [PATH...]

Needs Linux, Python 3.8, and the module `zstandard` or the program `zstd`. Changes nothing in the repository; no
other process may write to it meanwhile. DEST is new or an empty folder. VERSION may be `latest`. Series and
versions without a usable name appear as #NUMBER. Verifies all checksums and fingerprints. Leaves what is damaged
of a file as a hole. A container that only a search behind damage finds may be a piece of a stored file: the reader
uses it only with --guess, and names the files. It counts chunks and directories of another history (§9) as lost.
Exit status: 0 all is well; 1 error; 2 wrong usage; 3 something is damaged or was refused, and the messages say what;
10 no repository; 130 interrupted. Memory grows with the id runs and marks of containers, the manifests of versions
that stored the version's data, and the hard-linked files."""
import base64, collections, functools, hashlib, itertools, operator, os, re, resource  # noqa: E401
import shutil, stat, struct, subprocess, sys, time  # noqa: E401
try: import zstandard
except ImportError: zstandard = None
MASK, ID_MAX, SIZE_MAX = (1 << 64) - 1, (1 << 32) - 1, (1 << 63) - 1
BLOCK_MAX, CONTAINER_MAX, PAGE_MAX, VALUE_MAX = 131072, 4 << 20, 1 << 20, 1 << 30
problems = 0
class Damage(Exception): """Bytes that break a rule of FORMAT.md, or that cannot be read."""
def need(condition, text):
    if not condition: raise Damage(text)
def show(name):  # returns text for a terminal: control characters and bytes that are not UTF-8 are escaped
    name = b"/".join(name) or b"." if isinstance(name, tuple) else os.fsencode(name)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode()
                   for c in name.decode("utf-8", "backslashreplace"))
def problem(text, counts=True):
    global problems
    problems += counts
    print("varve-read:", show(str(text)), file=sys.stderr)
def fail(status, text): sys.exit(problem(text) or status)
# ---- XXH3-64 with seed 0, the checksum of the format ----
SECRET = base64.b64decode(
    "uP5sOSOkS758AYEs9yGtHN7UbemDkJfbckCkpLezZx/LeeZOzMDleIJa0H3M/3IhuAhGdPdDJI7gNZDmgTomTDwoUruRwwDLiNBlixtTLqNxZEiX"
    "og35TjgZ70ap3qzYqPp2P+OcND/53LvHxwtPHYpR4EvNtFkxyJ9+ydl4c2TqxayDNNPrw8WBoP/6E2PrFw3dUbfw2knTFlUmKdRonisWvlh9R6H8"
    "j/i40XrQMc5FyzqPlRYEKK/X+8q7S0B+")
P1, P2, P3, P4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
STRIPE_KEYS = b"".join(SECRET[8 * n:8 * n + 64] for n in range(16))
def le(data, at, size=8): return int.from_bytes(data[at:at + size], "little")
def fold(a, b): return a * b & MASK ^ a * b >> 64
def avalanche(h, first=37, factor=0x165667919E3779F9):
    h = (h & MASK ^ (h & MASK) >> first) * factor & MASK
    return h ^ h >> 32
def xxh3(data):  # returns the checksum of some bytes
    def mix(at, key): return fold(le(data, at) ^ le(SECRET, key), le(data, at + 8) ^ le(SECRET, key + 8))
    n = len(data)
    if n > 240: return xxh3_long(data, n)
    if n > 128:
        h = avalanche(n * P1 + sum(mix(16 * i, 16 * i) for i in range(8)))
        return avalanche(h + sum(mix(16 * i, 16 * i - 125) for i in range(8, n // 16)) + mix(n - 16, 119))
    if n > 16:
        pairs = ((16 * i, 32 * i) for i in range((n - 1) // 32 + 1))
        return avalanche(n * P1 + sum(mix(at, key) + mix(n - 16 - at, key + 16) for at, key in pairs))
    if n > 8:
        low, high = le(data, 0) ^ le(SECRET, 24) ^ le(SECRET, 32), le(data, n - 8) ^ le(SECRET, 40) ^ le(SECRET, 48)
        return avalanche(n + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high))
    if n > 3:
        h = (le(data, n - 4, 4) | le(data, 0, 4) << 32) ^ le(SECRET, 8) ^ le(SECRET, 16)
        h = (h ^ h << 49 ^ h >> 15 ^ h << 24 ^ h >> 40) * 0x9FB21C651E98DF25 & MASK
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & MASK
        return h ^ h >> 28
    h = le(SECRET, 0, 4) ^ le(SECRET, 4, 4) if n else le(SECRET, 56) ^ le(SECRET, 64)
    h ^= data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8 if n else 0
    return avalanche((h ^ h >> 33) * P2, 29, P3)
def xxh3_long(data, n):
    lanes = [0xC2B2AE3D, P1, P2, P3, P4, 0x85EBCA77, 0x27D4EB2F165667C5, 0x9E3779B1]
    for at in range(0, n, 1024):  # blocks of 16 stripes; the last stripe is the last 64 bytes of all
        size = min(1024, (n - 1 - at) // 64 * 64)
        parts = [(data[at:at + size], STRIPE_KEYS[:size])] + [(data[-64:], SECRET[121:185])] * (at + 1024 >= n)
        for piece, keys in parts:
            mixed = int.from_bytes(piece, "little") ^ int.from_bytes(keys, "little")
            words = struct.unpack("<%dQ" % (len(piece) // 8), piece)
            halves = struct.unpack("<%dI" % (len(piece) // 4), mixed.to_bytes(len(piece), "little"))
            products = list(map(operator.mul, halves[::2], halves[1::2]))
            lanes = [h + sum(words[i ^ 1::8]) + sum(products[i::8]) & MASK for i, h in enumerate(lanes)]
        if at + 1024 < n:
            lanes = [(h ^ h >> 47 ^ le(SECRET, 128 + 8 * i)) * 0x9E3779B1 & MASK for i, h in enumerate(lanes)]
    return avalanche(n * P1 + sum(fold(lanes[i] ^ le(SECRET, 11 + 8 * i), lanes[i + 1] ^ le(SECRET, 19 + 8 * i))
                                  for i in range(0, 8, 2)))
# ---- Files, compression, numbers ----
def read(path, at=0, count=None):  # returns bytes of a regular file; without a count, its size
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            need(stat.S_ISREG(status.st_mode), "%s is no regular file" % path)
            if count is None: return status.st_size
            data = os.pread(file.fileno(), min(count, max(status.st_size - at, 0)), at)
    except OSError as error: raise Damage("%s: %s" % (path, error.strerror))
    need(len(data) == count, "%s ends too early" % path)
    return data
def numbered(folder, suffix="", prefix=""):  # returns number -> path of the files or folders, as NNNNNNNN.seg
    form = re.compile(re.escape(prefix) + "([0-9a-f]{8})" + re.escape(suffix))
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else ()
    return {int(found[1], 16): os.path.join(folder, found[0]) for found in map(form.fullmatch, names) if found}
def decompress(data, size_max, base=b""):  # returns at most so many bytes of what one Zstandard frame holds
    if zstandard:
        prefix = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if base else None
        try: return zstandard.ZstdDecompressor(dict_data=prefix).stream_reader(data).read(size_max)
        except zstandard.ZstdError: return b""
    shutil.which("zstd") or sys.exit("varve-read: install the program zstd, or the Python module zstandard")
    with open(os.memfd_create("base"), "w+b", buffering=0) as file:
        file.write(base)
        command = "zstd -dcq %s 2>/dev/null | head -c %d" % (
            "--patch-from=/proc/self/fd/%d" % file.fileno() if base else "", size_max)
        return subprocess.run(command, shell=True, input=data, stdout=subprocess.PIPE, pass_fds=[file.fileno()]).stdout
def decode(path, at, size, raw, codec, check, base=None):  # returns the raw bytes of a frame or a block (§4, §9)
    where = "%s: the data at byte %d" % (path, at)
    need(0 < size <= raw <= BLOCK_MAX and codec == (size < raw), where + " has wrong sizes")
    data = read(path, at, size)
    need(xxh3(data) == check, where + " has a wrong checksum")
    data = decompress(data, raw + 1, Store.frame(*base) if base else b"") if codec else data
    need(len(data) == raw, where + " does not decompress to its size")
    return data
def good_name(name): return re.fullmatch(rb"[^/\0]{1,255}", name) and name not in (b".", b"..")
class Cursor:
    """Reads the bytes of an object from front to back, never beyond their end."""
    def __init__(self, data, at=0): self.data, self.at = data, at
    def take(self, count):
        need(count <= len(self.data) - self.at, "an object ends too early")
        self.at += count
        return self.data[self.at - count:self.at]
    def varint(self, most=MASK):
        found = re.compile(rb"[\x80-\xff]{0,9}[\0-\x7f]").match(self.data, self.at)
        value = sum((byte & 127) << 7 * i for i, byte in enumerate(self.take(len(found[0]) if found else 1 << 64)))
        need(value <= most, "a number is too large")
        return value
    def svarint(self): return (lambda value: value >> 1 ^ -(value & 1))(self.varint())
    def text(self, most): return self.take(self.varint(most))
    def name(self, previous):  # returns a name that shares bytes with the previous one and comes after it
        name = previous[:self.varint(len(previous))] + self.text(255)
        need(previous < name and good_name(name), "a name is not allowed: " + show(name))
        return name
# ---- Births (§7): number -> (mark, series, version, digest or None) ----
def read_births(cursor):
    births, birth, number = {}, 0, functools.partial(cursor.varint, ID_MAX)
    for _ in range(cursor.varint()):
        birth += number()
        births[birth] = cursor.take(16), number(), number(), le(cursor.take(8), 0) if cursor.varint(1) else None
    return births
def differ(births, others, keys=None):  # returns whether a birth has two marks or two digests; without keys: any
    pairs = [(births[key], others[key]) for key in keys or births if key in births and key in others]
    return any(a[0] != b[0] or a[3] != b[3] and None not in (a[3], b[3]) for a, b in pairs)
# ---- Manifests and labels (§9) ----
def records(path, at, kind, series, version, lost=None):
    """Yields the type, key and value of each record of a manifest, labels or an update; at last 0, 0, end.
    Calls `lost` for damaged blocks and goes on behind them; without it, raises Damage."""
    head = read(path, at, 64)
    magic, form, *names, _, size, total, _, zero, check = struct.unpack("<IHHIIQQQQQQ", head)
    need(magic == 0x4E4D5656 and check == xxh3(head[:56]), "%s: no header at byte %d" % (path, at))
    need(form in (1, 2) and not zero and names == [kind, series, version], "%s: an unknown format or place" % path)
    at, end, count, first, value = at + 64, at + 64 + size, 0, None, bytearray()
    while at < end:
        stored, *rest = struct.unpack("<IIIQ", read(path, at, 20))
        at += 20 + stored
        try:
            cursor = Cursor(decode(path, at - stored, stored, *rest))
            while cursor.at < len(cursor.data):
                flags, key, joins = cursor.take(1)[0], cursor.text(255), first is not None
                first, count = first or (flags & 0x3F, key), count + 1
                value += cursor.text(BLOCK_MAX)
                need(first == (flags & 0x3F, key) and (flags & 0x40 > 0) == joins and len(value) <= VALUE_MAX,
                     "%s: records are mixed up" % path)
                if not flags & 0x80:
                    yield (*first, bytes(value))
                    first, value = None, bytearray()
        except Damage as error:
            if not lost or lost(error): raise
            count, first, value = total, None, bytearray()
    need(at == end and count >= total and not first, "%s: records are missing" % path)
    yield 0, 0, end
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
    names, group, below, size, device, target, runs = 1, 0, 0, 0, 0, b"", None
    def __init__(self, cursor, last, is_root=False):
        flags, number = cursor.take(1)[0], cursor.varint
        need(not flags & 0x80 and flags & 0x50 != 0x50, "an entry has unknown flags")
        self.name = cursor.take(2)[2:] if is_root else cursor.name(last.name)
        self.mode = last.mode if flags & 1 else number(0o177777)
        self.uid, self.gid = (last.uid, last.gid) if flags & 2 else (number(ID_MAX), number(ID_MAX))
        seconds = (last.mtime // 10**9 + cursor.svarint() + (1 << 63) & MASK) - (1 << 63)
        self.mtime = seconds * 10**9 + (0 if flags & 4 else le(cursor.take(4), 0))
        need(seconds == self.mtime // 10**9, "nanoseconds are out of range")
        if flags & 8: self.names, self.group = number(ID_MAX), number(SIZE_MAX)
        self.xattrs = last.xattrs if flags & 0x40 else {}
        for _ in range(number(PAGE_MAX) if flags & 0x10 else 0):
            key = cursor.text(255)
            self.xattrs[key] = cursor.text(65536)
        self.base, self.node, self.kind = last.base, last.node, stat.S_IFMT(self.mode)
        if self.kind == stat.S_IFREG and flags & 0x20:
            self.size, _, self.node = number(SIZE_MAX), number(), last.node + cursor.svarint() & MASK
        elif self.kind == stat.S_IFREG:
            self.runs = list(read_runs(cursor, last.base))
            self.size = sum(run[2] for run in self.runs)
            self.base = sum(self.runs[-1][:2]) & MASK if self.runs else last.base
        elif self.kind == stat.S_IFDIR:
            self.node, self.below, _ = last.node + cursor.svarint() & MASK, number(), number()
        elif self.kind == stat.S_IFLNK: self.target = cursor.text(4095)
        elif self.kind in (stat.S_IFBLK, stat.S_IFCHR): self.device = number()
        else: need(self.kind in (stat.S_IFIFO, stat.S_IFSOCK), "the type of an entry is unknown")
class Series:
    """The labels and manifests of one series. versions: number -> (state, name, ..., root, number). nodes, births and
    chunks: those of the manifests in `loaded`. chosen: the number of the version that is read."""
    def __init__(self, number, folder):
        self.number, self.name, self.versions, self.nodes, self.loaded = number, None, {}, {}, set()
        self.births, self.chunks, self.chosen = collections.defaultdict(dict), {}, 0
        self.is_other = functools.lru_cache(None)(lambda n: differ(self.births[n], self.births[self.chosen]))
        self.manifests, path = numbered(folder + "/manifests", ".man"), folder + "/labels"
        at, size, kind = 0, 1, 2
        try:
            while at < size:
                size, (*found, last) = read(path), records(path, at, kind, number, 0)
                for record in found: self.apply(*record)
                at, kind = last[2], 3
        except Damage as error:
            # An append that was interrupted is no damage: then nothing follows.
            rest = read(path, at + 1, min(size - at - 1, 1 << 24)) if kind == 3 else b"VVMN"
            problem("%s: no sound labels at byte %d (%s); what only manifests have is listed too, perhaps deleted "
                    "versions or old names" % (path, at, error), b"VVMN" in rest)
            for version in sorted(set(self.manifests) - set(self.versions)): self.load(version, self.apply)
    def apply(self, kind, key, value):  # takes over a record of the series or a version
        number, cursor = int.from_bytes(key, "big"), Cursor(value)
        if kind == 1: self.name = cursor.text(255)
        if kind == 10: self.versions.pop(number, None)
        if kind == 2:
            state = cursor.take(1)[0]
            state in (3, 5) and cursor.varint()
            name, _, _, sealed, _, entries, size, _, _, four = cursor.text(255), *(
                cursor.svarint() if i in (0, 2) else cursor.varint() for i in range(9))
            need(four == 4, "version %d has no root" % number)
            self.versions[number] = state, name, sealed, entries, size, Entry(cursor, Entry, True), number
    def load(self, number, apply=lambda *record: None):  # takes over a manifest once, passes the rest on
        if number in self.loaded: return
        self.loaded.add(number)
        try:
            need(number in self.manifests, "manifest %d of series %d is missing" % (number, self.number))
            for kind, key, value in records(self.manifests[number], 0, 1, self.number, number, problem):
                if kind in (3, 4): self.nodes[key] = value
                elif kind == 5: self.chunks[number] = value
                elif kind == 11: self.births[number] = read_births(Cursor(value))
                elif kind in (1, 2): apply(kind, key, value)
        except Damage as error: problem(error)
    def node(self, number):
        self.load(number >> 32)
        need(not self.is_other(number >> 32), "manifest %d belongs to another history" % (number >> 32))
        return self.nodes.get(number.to_bytes(8, "big")) or need(0, "node %x of series %d is lost" % (number, self.number))
    def chunk_runs(self, number):  # yields (first id, end) of the chunks to which a version refers
        cursor, end = Cursor(self.chunks.get(number, b"")), 0
        for _ in range(cursor.varint()):
            first = end + cursor.varint()
            end = first + cursor.varint()
            yield first, end
    def entries(self, directory):  # yields the entries of a directory, and Damage for parts of it that are lost
        # A page has as many entries as its reference states, and refers to lower ids: so every forged tree ends.
        pages, last = [(directory.node, None, directory.below, MASK + 1)], b""
        while pages:
            node, own, total, above = pages.pop()
            try:
                cursor, found, previous, name, child = Cursor(self.node(node), 1), [], Entry, b"", 0
                leaf, size = cursor.data[0] == 1, len(cursor.data)
                need(node < above and size <= PAGE_MAX and (leaf or cursor.data[0] == 2), "a page is wrong")
                for _ in range(cursor.varint(PAGE_MAX)):
                    if leaf:
                        previous = Entry(cursor, previous)
                        need(previous.kind != stat.S_IFDIR or previous.node < node, "a tree has a cycle")
                        found.append((previous, 1, 1 + previous.below))
                    else:
                        name, child, count = cursor.name(name), child + cursor.svarint() & MASK, cursor.varint(ID_MAX)
                        found.append((child, count, count + cursor.varint(ID_MAX), node))
                need(cursor.at == size and sum(f[2] for f in found) == total and all(f[1] for f in found)
                     and own in (None, sum(f[1] for f in found)) and len(pages) < 1 << 16, "a page is wrong")
                pages += reversed(found) if not leaf else []
            except Damage as error: found = yield error
            for entry, *_ in found if found and leaf else ():
                yield entry if entry.name > last else Damage("a name is out of order: " + show(entry.name))
                last = max(last, entry.name)
# ---- Containers (§1, §3, §4) ----
def search(path, at, size, step):  # returns the next place where a container may begin, or the end of the file
    while at < size:
        window = read(path, at, min(1 << 20, size - at))
        found = [at + m.start() for m in re.finditer(b"CVRV", window) if not (at + m.start()) % step]
        if found: return found[0]
        at += max(len(window) - 3, 1)
    return size
class Store:
    """The containers of a series or of the pool. Behind a damaged header, a search finds the next one, or a piece of
    a stored file. So it counts only with `guess`, and if no other has the chunk; `guessed` is then set."""
    frame = staticmethod(functools.lru_cache(512)(decode))  # of at most 128 KiB
    def __init__(self, folder, number, guess=False, births=()):  # births: those of the version
        self.number, self.guess, self.guessed, self.containers, self.births = number, guess, False, [], dict(births)
        self.runs = collections.defaultdict(list)  # id >> 10 -> (first id, count, container, place in its table, mark)
        self.aliases = collections.defaultdict(list)  # id >> 10 -> (first id, end, first target, tags, births)
        found = [(self.scan, path, step) for kind, suffix, step in (("/active", ".seg", 4096), ("/volumes", ".vol", 1))
                 for path in numbered(folder + kind, suffix).values()]
        found += [(self.read_aliases, path) for path in numbered(folder, ".als", "aliases-").values()]
        for take, *how in found:
            try: take(*how)
            except Damage as error: problem(error)
    def read_aliases(self, path):  # adds what a file of aliases says (§13)
        head, at, size = read(path, 0, 40), 40, read(path)
        if head[:8] not in (b"VVAL\1\0\0\0", b"VVAL\2\0\0\0") or le(head, 32) != xxh3(head[:32]):
            problem(path + ": a damaged header")
        size, part = size - le(head, 24), read(path, max(size - le(head, 24), 40), min(le(head, 24), 1 << 26))
        need(not part or le(part, 0) == xxh3(part[8:]), path + ": its births are damaged")
        births = read_births(Cursor(part, 8)) if part else {}
        while at < size:
            check, count, runs = struct.unpack("<QII", read(path, at, 16))
            need(0 < count <= 65536, "%s: the blocks from byte %d on are damaged" % (path, at))
            cursor, at, end = Cursor(read(path, at + 8, 8 + count), 8), at + 16 + count, 0
            if check != xxh3(cursor.data): runs = problem("%s: damage before byte %d" % (path, at)) or 0
            for _ in range(runs):
                first = end + cursor.varint()
                end, target = first + cursor.varint(8000), first + cursor.svarint() & MASK
                need(min(first, target) >> 63 and first < end <= MASK, path + ": an alias is wrong")
                alias = first, end, target, cursor.take(8 * (end - first)), births
                for key in range(first >> 10, (end - 1 >> 10) + 1): self.aliases[key].append(alias)
    def scan(self, path, step):  # finds the containers of a file, and searches for more behind damage
        size, at, gap, sure = read(path), 0, None, True
        while at < size:
            following = None
            try:
                fixed = read(path, at, 128)
                magic, form, _, flags, store, _, frames, chunks, runs, header, data, _, check, last = struct.unpack(
                    "<IHHIIIIIIIIQQ64xQ", fixed)
                need(magic == 0x56525643 and last == xxh3(fixed[:120]), "no header")
                need(form == 1 and not flags & ~13, "a format that is unknown to this program")
                need(store == self.number and header + data <= CONTAINER_MAX, "a wrong header")
                following = -(-(at + header + data) // step) * step
                if gap: problem("%s: no container at byte %d (%s); continues at byte %d" % (path, *gap, at))
                head, place, gap = read(path, at, header), 0, None
                need(check == xxh3(head[128:]), "its tables have a wrong checksum")
                ids = [*struct.iter_unpack("<QI", head[128 + 24 * frames:][:12 * runs])]
                births, end = sorted({first >> 32 for first, _ in ids}), 128 + 24 * frames + 12 * runs + 35 * chunks
                need(end + (flags >> 2 & 1) * 16 * len(births) <= header and len(ids) == runs
                     and sum(count for _, count in ids) == chunks, "its tables differ")
                marks = {birth: head[end + 16 * i:][:16] if flags & 4 else bytes(16) for i, birth in enumerate(births)}
                for first, count in ids:
                    for key in range(first >> 10, (first + count - 1 >> 10) + 1):
                        self.runs[key].append((first, count, len(self.containers), place, marks[first >> 32]))
                    place += count
                self.containers.append((path, at, header, frames, runs, chunks, sure))
            except Damage as error:
                if following: problem("%s: the container at byte %d is damaged: %s" % (path, at, error))
                else: gap, sure, following = gap or (at, error), False, search(path, at + step, size, step)
            at = following
        if gap: problem("%s: no container at byte %d (%s), nor behind it" % (path, *gap), counts=False)
    @functools.lru_cache(256)
    def table(self, owner):  # returns (fingerprint, bytes, place in frame, frame) of each chunk
        path, at, header, frames, runs, chunks, _ = self.containers[owner]
        head, place, found, known = read(path, at, header), at + header, [], []
        table = struct.iter_unpack("<32sHB", head[128 + 24 * frames + 12 * runs:][:35 * chunks])
        for count, stored, raw, codec, back, _, seal in struct.iter_unpack("<IIIBBHQ", head[128:128 + 24 * frames]):
            base, start = known[-back] if 0 < back <= len(known) else (None, 0), 0
            known.append(((path, place, stored, raw, codec, seal, base[0]), base[1] + 1))
            need(known[-1][1] <= 4 and back <= len(known), "%s: a base is wrong" % path)
            for check, low, high in itertools.islice(table, count):
                found.append((check, low + (high << 16), start, known[-1][0]))
                start += low + (high << 16)
            place += stored
        need(len(found) == chunks, "%s: the frames of the container at byte %d are wrong" % (path, at))
        return found
    def places(self, chunk, *named):  # returns (container, place in its table) where a chunk is; named: births
        return [(owner, start + chunk - first) for first, count, owner, start, mark in self.runs.get(chunk >> 10, ())
                if 0 <= chunk - first < count and all(b.get(chunk >> 32, (mark,))[0] == mark for b in named)]
    def copies(self, chunk):  # returns what the tables say of each copy of a chunk of the version's history
        found, other = self.places(chunk, self.births), self.places(chunk)
        for first, end, target, tags, births in () if found else self.aliases.get(chunk >> 10, ()):
            if found or not first <= chunk < end: continue
            target, at = target + chunk - first, 8 * (chunk - first)
            other = other or self.places(target)
            if differ(births, self.births, (chunk >> 32, target >> 32)): continue
            found = [copy for copy in self.places(target, self.births, births)
                     if self.table(copy[0])[copy[1]][0][:8] == tags[at:at + 8]]
        need(found, "chunk %x %s" % (chunk, "belongs to another history" if other else "is in no container"))
        sure = [copy for copy in found if self.containers[copy[0]][6]]
        need(sure or self.guess, "chunk %x is only in a container behind a damaged one (see --guess)" % chunk)
        self.guessed = self.guessed or not sure
        return [self.table(owner)[place] for owner, place in sure or found]
    def content(self, copies):  # returns the bytes of a chunk from the first sound copy, or Damage
        for check, size, start, frame in copies:
            try:
                data = self.frame(*frame)[start:start + size]
                need(hashlib.sha256(data).digest() == check, "%s: byte %d: a wrong fingerprint" % frame[:2])
                return data
            except Damage as error: failure = error
        return failure
# ---- Listing and restoring ----
class Walk:
    """Lists entries, or restores them into the working directory. Every name is used inside a directory that
    the program made and entered through no link, and only for new files. So nothing outside can change."""
    def __init__(self, repo, every, series, paths, lists, guess):
        self.births = series.births[series.chosen]
        self.store = functools.lru_cache(None)(lambda number: Store(
            repo + ("/series/%08x" % number if number else "/pool"), number, guess, self.births))
        self.every, self.series, self.paths, self.lists = every, series, paths, lists
        self.top, self.missing, self.links = os.open(".", os.O_RDONLY), set(paths), {}
    def tree(self, root):
        stack = [((), root, self.series.entries(root), self.top)]
        while stack:
            here, folder, entries, fd = stack[-1]
            entry = next(entries, None)
            if entry is None:
                stack.pop()
                self.lists or self.attributes(b".", folder, here)
                self.lists or not stack or os.close(fd) or os.fchdir(stack[-1][3])
            elif isinstance(entry, Damage): problem("%s: names are lost: %s" % (show(here), entry))
            else:
                path = here + (entry.name,)
                if self.paths and not any(p[:len(path)] == path[:len(p)] for p in self.paths): continue
                self.missing.discard(path)
                try: fd = self.visit(entry, path, fd) or fd
                except (Damage, OSError, ValueError, OverflowError) as error:
                    problem("%s: not restored: %s" % (show(path), error))
                else: entry.kind != stat.S_IFDIR or stack.append((path, entry, self.series.entries(entry), fd))
    def visit(self, entry, path, here):  # lists or makes an entry; returns the descriptor of an entered directory
        if self.lists:
            print(stat.filemode(entry.mode), entry.names, entry.uid, entry.gid, entry.size,
                  date(entry.mtime // 10**9), show(path), *["->", show(entry.target)] if entry.target else [])
        elif entry.kind == stat.S_IFDIR:
            os.mkdir(entry.name, 0o700)
            os.fchdir(fd := os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
            return fd
        elif entry.names > 1 and entry.group in self.links:
            *above, first = re.findall(rb"(?s).{1,3800}(?:/|\Z)", self.links[entry.group])
            try:  # The path of the first name may be too long for one call.
                os.fchdir(self.top)
                for part in above: os.chdir(part)
                os.link(first, entry.name, dst_dir_fd=here, follow_symlinks=False)
            finally: os.fchdir(here)
        else:
            self.make(entry, path) or self.attributes(entry.name, entry, path)
            if entry.names > 1: self.links[entry.group] = b"/".join(path)
    def make(self, entry, path):
        if entry.kind == stat.S_IFLNK: return os.symlink(entry.target, entry.name)
        if entry.kind != stat.S_IFREG: return os.mknod(entry.name, entry.kind | 0o600, entry.device)
        lost, how = [], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(entry.name, how, 0o600), "wb", buffering=0) as file:
            for place, size, data in self.content(entry, path):
                if isinstance(data, Exception): lost.append((size, place, data))
                else: os.pwrite(file.fileno(), data, place)
            file.truncate(entry.size)
        if lost: problem("%s: %d bytes are lost and left as a hole, the first at byte %d: %s" % (
            show(path), sum(part[0] for part in lost), *lost[0][1:]))
    def content(self, entry, path):  # yields (place, size, bytes or Damage) of the parts of a file
        end, runs = 0, entry.runs
        try:
            if runs is None:
                cursor = Cursor(self.series.node(entry.node))
                need(cursor.take(1) == b"\3", "node %x is no recipe" % entry.node)
                runs = read_runs(cursor, 0, (4 << 20) + entry.size // 256)
            for first, count, size in runs:
                need(size <= entry.size - end, "the recipe is longer than the file")
                at, end = end, end + size
                store = self.store(0 if first >> 63 else self.series.number)
                wrong, store.guessed = count and self.is_wrong(store, first >> 32), False
                if wrong: yield at, size, Damage("chunk %x belongs to another history, by its digest" % first)
                elif count: yield from self.run(store, first, first + count, at, end)
                if store.guessed: problem("%s: may be wrong from byte %d to %d" % (show(path), at, end))
            need(end == entry.size, "the recipe is shorter than the file")
        except Damage as error: yield end, entry.size - end, error
    @functools.lru_cache(None)
    def is_wrong(self, store, birth):  # returns whether a digest shows that the chunks of a birth are others
        mark, series, number, digest = self.births.get(birth, (None,) * 4)
        series, total = self.every.get(series), 0
        if digest is None or not series or number not in series.manifests: return False  # Nothing tells.
        series.load(number)
        there, _, _, known = series.births[number].get(birth, (None,) * 4)
        try:
            need(there == mark and known is not None, "nothing tells")
            for first, end in series.chunk_runs(number):
                for chunk in range(first, end) if first >> 32 == birth else ():
                    total += sum(xxh3(struct.pack("<Q32sI", chunk, *c)) for c in {c[:2] for c in store.copies(chunk)})
        except Damage: return False
        return (total & MASK == known) != (known == digest)
    def run(self, store, first, last, at, end):  # reads forward, and from the end if a chunk's length is lost
        backward, reason = False, Damage("the chunks are shorter than their run")
        while first < last:
            try:
                copies = store.copies(last - 1 if backward else first)
                size = copies[0][1]
                need(len({copy[:2] for copy in copies}) == 1, "a chunk has several contents")
                need(size <= end - at, "the chunks are longer than their run")
                yield end - size if backward else at, size, store.content(copies)
                if backward: last, end = last - 1, end - size
                else: first, at = first + 1, at + size
            except Damage as error:
                if backward: break
                backward, reason = True, error
        if at < end: yield at, end - at, reason
    def attributes(self, name, entry, path):
        steps = [(os.chown, entry.uid, entry.gid)] if os.geteuid() == 0 else []
        steps += [(os.setxattr, *pair) for pair in entry.xattrs.items()]
        if entry.kind != stat.S_IFLNK: steps.append((lambda *args, **_: os.chmod(*args), stat.S_IMODE(entry.mode)))
        for step, *values in [*steps, (functools.partial(os.utime, ns=(entry.mtime, entry.mtime)),)]:
            try: step(name, *values, follow_symlinks=False)
            except (OSError, ValueError, OverflowError) as error: problem("%s: %s" % (show(path), error))
def check_superblock(path):  # refuses a repository of another format (§2)
    body, _, check = read(path, 0, min(read(path), 65536)).rpartition(b"checksum = ")
    lines = dict(line.split(b" = ", 1) for line in body.split(b"\n") if b" = " in line)
    need(check == b"%016x\n" % xxh3(body), path + " is damaged")
    known = {b"none", b"pool", b"pool-aliases", b"marks", b"delta", b"label-parts"}
    unknown = set(lines.get(b"features_required", b"").split(b" ")) - known
    if unknown or lines.get(b"format_version") != b"1": fail(1, path + " is encrypted (varve-read-encrypted.py), or newer")
def by_name(things, name_of):  # returns name -> thing; one without a name of its own has #NUMBER
    names = {number: name_of(things[number]) or b"" for number in sorted(things)}
    uses = collections.Counter(names.values())
    return {name if good_name(name) and uses[name] == 1 else b"#%d" % number: things[number]
            for number, name in names.items()}
def date(seconds): return time.strftime("%F %T UTC", time.gmtime(max(-1 << 55, min(seconds, 1 << 55))))
def main(args):
    guess = args[2:4] == ["restore", "--guess"]
    args = args[:3] + args[4:] if guess else args
    if len(args) < 3 or (args[2], min(len(args), 5)) not in (("ls", 3), ("ls", 4), ("ls", 5), ("restore", 5)):
        sys.exit(print(__doc__.split("\n\n")[1], file=sys.stderr) or 2)
    repo, lists, *rest = os.path.abspath(args[1]), args[2] == "ls", *args[3:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    try: check_superblock(repo + "/varve.repo")
    except Damage as error: problem(error) if os.path.isdir(repo + "/series") else fail(10, "no repository: %s" % error)
    every, versions = {n: Series(n, folder) for n, folder in sorted(numbered(repo + "/series").items())}, {}
    for name, series in by_name(every, lambda series: series.name).items():
        for version, found in by_name(series.versions, lambda version: version[1]).items():
            versions[name + b"/" + version] = series, found
            if found[0] == 2: versions[name + b"/latest"] = series, found
            if not rest: print("%s: %s, %d entries, %d bytes" % (show(name + b"/" + version), "sealed " + date(
                found[2]) if found[0] == 2 else "open", *found[3:5]))
    if not rest: return
    series, version = versions.get(os.fsencode(rest[0]).strip(b"/"), (None, [0]))
    if version[0] != 2: fail(1, "there is no sealed version %s" % rest[0])
    if not lists and (os.makedirs(rest[1], 0o700, exist_ok=True) or os.chdir(rest[1]) or os.listdir(".")):
        fail(1, "%s is not empty" % rest[1])
    paths = {tuple(filter(None, os.fsencode(path).split(b"/"))) for path in rest[1 if lists else 2:]} - {()}
    series.chosen = version[6]
    series.load(series.chosen, series.apply)
    root, labelled = series.versions[series.chosen][5], version[5]
    if (root.node, root.below) != (labelled.node, labelled.below): problem("its manifest has another history: read by it")
    (walk := Walk(repo, every, series, paths, lists, guess)).tree(root)
    for path in walk.missing: problem("%s: there is no such name" % show(path))
if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")
    try: main(sys.argv)
    except KeyboardInterrupt: sys.exit(130)
    except (Damage, OSError) as error: fail(1, error)
    sys.exit(3 if problems else 0)
