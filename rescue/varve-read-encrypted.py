#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads an encrypted Varve repository as varve-read.py, which must be beside it, reads a plain one. Written from
docs/FORMAT.md alone (§14).

usage: varve-read-encrypted.py KEY REPO ls [SERIES/VERSION [PATH...]]
       varve-read-encrypted.py KEY REPO restore [--guess] SERIES/VERSION DEST [PATH...]
KEY:   --passphrase-file FILE     a passphrase, what a key command prints, or a recovery code; - for standard input
       --key-file FILE            a file that is the key

Needs the Python module `cryptography` (Debian: python3-cryptography). A passphrase needs Argon2id, too: of
`cryptography` 44 or later, or of the module `argon2` (Debian: python3-argon2). A key file and a recovery code do
without. The exit status is that of varve-read.py; 12 if the key opens no slot. Without the catalog, nothing
tells that the storage has put an older container back instead of a newer one; then chunks are missing."""
import bisect, collections, functools, hashlib, hmac, importlib.util, os, re, struct, sys  # noqa: E401
try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
except ImportError: sys.exit("varve-read: install the Python module cryptography (Debian: python3-cryptography)")
sys.dont_write_bytecode = True
place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "varve-read.py")
try:
    spec = importlib.util.spec_from_file_location("varve_read", place)
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
except OSError as error: sys.exit("varve-read: %s: %s" % (place, error.strerror))
Damage, need, le, xxh3, fail = plain.Damage, plain.need, plain.le, plain.xxh3, plain.fail
read_disk, read_records, read_frame = plain.read, plain.records, plain.decode
COUNTS, TABLES = (1 << 32) - 2, (1 << 32) - 1  # The nonces of these parts of a container.
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Of a recovery code.
class Repository: """The keys and the cipher of the repository that is read."""
repository = Repository()
# ---- Keys (§14.1) ----
def hkdf(key, salt, info):  # RFC 5869 with SHA-256, for 32 bytes
    return hmac.digest(hmac.digest(salt, key, "sha256"), info + b"\1", "sha256")
def salted(key, salt): return hkdf(key, salt, b"varve salted")
def open_text(cipher, key, nonce, sealed, bound):  # returns None if it does not open
    try: return cipher(key).decrypt(nonce, sealed, bound)
    except InvalidTag: return None
def argon2id(text, salt, kib, passes, lanes):
    try:
        from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
        return Argon2id(salt=salt, length=32, iterations=passes, lanes=lanes, memory_cost=kib).derive(text)
    except ImportError: pass
    try: from argon2 import low_level
    except ImportError:
        fail(1, "a passphrase needs the Python module argon2 (Debian: python3-argon2); a recovery code does not")
    return low_level.hash_secret_raw(text, salt, passes, kib, lanes, 32, low_level.Type.ID)
def code_bytes(text):  # returns the bytes of a recovery code, or None for any other text
    code = text.decode("ascii", "replace").upper().translate(str.maketrans("OIL", "011", " -\n\r"))
    if len(code) != 35 or set(code) - set(DIGITS): return None
    values = [DIGITS.index(digit) for digit in code]
    data = functools.reduce(lambda sum, value: sum << 5 | value, values[:32], 0).to_bytes(20, "big")
    check = xxh3(data)
    return data if values[32:] == [check >> 5 * i & 31 for i in range(3)] else None
def slot_keys(words, secret, is_file):  # yields the keys of a slot that the secret may be
    kind, how, salt = words[0], words[2].split(b":"), bytes.fromhex(words[3].decode())
    if kind == b"key-file" and is_file or kind == b"recovery" and not is_file and code_bytes(secret):
        yield hkdf(secret if is_file else code_bytes(secret), salt, b"varve slot"), (0, 0, 0)
    elif kind in (b"passphrase", b"command") and not is_file:
        kib, passes, lanes = cost = tuple(map(int, how[1:]))
        need(how[0] == b"argon2id" and 8 * lanes <= kib <= 1 << 20 and 0 < passes <= 16 and 0 < lanes <= 16,
             "a key slot has a cost that is not allowed")
        yield argon2id(re.sub(rb"\r?\n\Z", b"", secret), salt, *cost), cost
def open_slot(words, secret, is_file):  # returns the master key, or None
    numbers = {b"passphrase": 1, b"key-file": 2, b"command": 3, b"recovery": 4}
    salt, commitment, sealed = (bytes.fromhex(word.decode()) for word in words[3:6])
    for key, cost in slot_keys(words, secret, is_file):
        context = repository.id + struct.pack("<B3I", numbers[words[0]], *cost)
        if not hmac.compare_digest(hkdf(key, salt, b"varve slot commitment" + context), commitment): continue
        master = open_text(AESGCM, hkdf(key, salt, b"varve slot sealing"), bytes(12), sealed, b"varve slot" + context)
        if master: return master
    return None
def check_superblock(path):  # opens the repository (§2, §14.1); its copy stands in for a damaged file
    for name in (path, os.path.join(os.path.dirname(path), "varve.keys")):
        try: return open_superblock(name)
        except (Damage, ValueError, IndexError) as error:
            plain.problem("%s cannot be used: %s" % (os.path.basename(name), error))
    fail(1, "neither varve.repo nor varve.keys can be used")
def open_superblock(path):
    text = read_disk(path, 0, min(read_disk(path), 65536))
    body, _, check = text.rpartition(b"checksum = ")
    need(check == b"%016x\n" % xxh3(body), "it is damaged")
    lines = dict(line.split(b" = ", 1) for line in body.split(b"\n") if b" = " in line)
    needs = set(lines.get(b"features_required", b"").split(b" "))
    ciphers = {b"aes-256-gcm": AESGCM, b"chacha20-poly1305": ChaCha20Poly1305}
    if lines.get(b"format_version") != b"1" or needs - {b"pool", b"pool-aliases", b"encryption", b"marks", b"delta", b"label-parts"} \
            or b"encryption" not in needs:
        fail(1, path + " is newer than this program, or not encrypted (see varve-read.py)")
    repository.cipher, repository.id = ciphers.get(lines.get(b"encryption")), lines[b"repository_id"]
    if not repository.cipher: fail(1, path + " has a cipher that is unknown to this program")
    slots = [value.split(b" ") for key, value in lines.items() if key.startswith(b"key_slot_")]
    masters = (open_slot(words, *repository.secret) for words in slots[:8])
    master = next(filter(None, masters), None)
    if not master: fail(12, "the key opens no slot of " + path)
    signed, _, mark = body.rpartition(b"authentication = ")
    keys = {name: hkdf(master, repository.id, b"varve " + name) for name in (b"containers", b"files", b"slots")}
    need(hmac.compare_digest(hmac.digest(keys[b"slots"], signed, "sha256").hex().encode(), mark.strip()),
         "its authentication is wrong: it was changed without the key")
    repository.containers, repository.files = keys[b"containers"], keys[b"files"]
# ---- Sealed containers (§14.2), shown as plain ones (§3) of the same place and length ----
Container = collections.namedtuple("Container", "head key bound tags")
known = collections.defaultdict(list)  # path -> offsets of the containers that were found, ascending
@functools.lru_cache(64)
def container(path, at):  # returns the container at an offset, or None if no sound header is there
    fixed = read_disk(path, at, 128)
    magic, form, zero, flags, store, number, total = struct.unpack("<IHHIIII", fixed[:24])
    if magic != 0x56525643 or le(fixed, 120) != xxh3(fixed[:120]) or not flags & 2: return None
    need(form == 1 and flags < 16 and 128 < total <= plain.CONTAINER_MAX, "a format that is unknown to this program")
    key = salted(repository.containers, fixed[24:56])
    def bound(nonce, value):
        return struct.pack("<6IQ", magic, store, number, flags & ~12, total, nonce, value) + repository.id
    def part(nonce, value, sealed):
        return open_text(repository.cipher, key, nonce.to_bytes(12, "little"), sealed, bound(nonce, value))
    def shown(counts, tables):
        start = struct.pack("<IHHIII", magic, form, zero, flags & ~2, store, number) + counts
        start += struct.pack("<Q", xxh3(tables)) + bytes(64)
        return start + struct.pack("<Q", xxh3(start)) + tables
    # A container that does not open is shown with a wrong checksum, so that the reader goes on behind it.
    damaged = shown(struct.pack("<5IQ", 0, 0, 0, 128, total - 128, 0), b"damaged")[:128]
    counts = part(COUNTS, le(fixed, 112), fixed[56:108])
    if not counts: return Container(damaged, key, bound, [])
    frames, chunks, runs, header, data, raw = struct.unpack("<5IQ", counts[:28])
    size = 32 * frames + 12 * runs + 35 * chunks
    if not 128 + size + 16 <= header <= total or data > total - header: return Container(damaged, key, bound, [])
    sealed = read_disk(path, at + 128, header - 128)
    tables = part(TABLES, 0, sealed) if le(counts, 28) == xxh3(sealed) else None
    if not tables: return Container(damaged, key, bound, [])
    rows = [tables[32 * i:32 * i + 32] for i in range(frames)]
    listed = b"".join(row[:16] + struct.pack("<Q", i) for i, row in enumerate(rows)) + tables[32 * frames:]
    head = shown(struct.pack("<5IQ", frames, chunks, runs, header, total - header, raw),
                 listed + bytes(header - 128 - len(listed)))
    return Container(head, key, bound, [row[16:] for row in rows])
def frame(path, at, size, raw, codec, index, base=None):  # returns the raw bytes of a frame: plain.decode() for sealed ones
    where = "%s: the data at byte %d" % (path, at)
    need(0 < size <= raw <= plain.BLOCK_MAX and codec == (size < raw), where + " has wrong sizes")
    found = container(path, known[path][bisect.bisect_right(known[path], at) - 1])
    data = open_text(repository.cipher, found.key, index.to_bytes(12, "little"),
                     read_disk(path, at, size) + found.tags[index], found.bound(index, raw))
    need(data is not None, where + " does not open")
    data = plain.decompress(data, raw + 1, plain.Store.frame(*base) if base else b"") if codec else data
    need(len(data) == raw, where + " does not decompress to its size")
    return data
# ---- Sealed files (§14.4) ----
def sealed_place(path):  # returns (kind, store, number, B) of a sealed file, or None
    names = path.split(os.sep)[-4:]
    for kind, form, unit in ((1, r"(?:.*/)?([0-9a-f]{8})/manifests/([0-9a-f]{8})\.man", 4096),
                             (2, r"(?:.*/)?([0-9a-f]{8})/(labels)", 512),
                             (7, r"(?:.*/)?(pool)/aliases-([0-9a-f]{8})\.als", 4096)):
        found = re.fullmatch(form, "/".join(names))
        if found: return (kind, 1 << 31 if found[1] == "pool" else int(found[1], 16),
                          0 if found[2] == "labels" else int(found[2], 16), unit)
    return None
@functools.lru_cache(64)
def sealed_file(path, size):  # returns (key, B, bytes of text)
    head = read_disk(path, 0, 64)
    magic, form, zero, unit, *_ = struct.unpack("<IHHII", head[:16])
    need(magic == 0x46535656 and le(head, 56) == xxh3(head[:56]), path + " has no sound header")
    need(form == 1 and unit in [1 << i for i in range(9, 17)], path + " has a format that is unknown to this program")
    last, rest = divmod(max(size - 65, 0), unit + 40)
    length = rest + 1 - 40
    if length > 0: length = min(le(read_disk(path, 64 + last * (unit + 40) + 8, 4), 0, 4) or length, length)
    return salted(repository.files, head[16:48]), unit, last * unit + max(length, 0)
@functools.lru_cache(256)
def block(path, size, n):  # returns the text of a block
    kind, store, number, _ = sealed_place(path)
    key, unit, _ = sealed_file(path, size)
    at = 64 + n * (unit + 40)
    data = read_disk(path, at, min(unit + 40, size - at))
    length = le(data, 8, 4)
    need(40 < 40 + length <= len(data) and le(data, 0) == xxh3(data[8:40 + length]) ^ n,
         "%s: block %d is damaged" % (path, n))
    bound = struct.pack("<4IQII", kind, store, number, unit, n, length, 0)
    text = open_text(repository.cipher, key, data[12:24], data[40:40 + length] + data[24:40], bound)
    need(text is not None, "%s: block %d does not open" % (path, n))
    return text
def read_sealed(path, at, count):  # returns a part of the text; without a count, its size
    size = read_disk(path)
    if size == 0: return b"" if count else 0
    _, unit, total = sealed_file(path, size)
    if count is None: return total
    text = b""
    for n in range(at // unit, -(-min(at + count, total) // unit)):
        try: part = block(path, size, n)
        except Damage:
            # A crash leaves damaged blocks at the end of labels, which have checksums of their own.
            if not path.endswith("labels"): raise
            part = b""
        text += part.ljust(min(unit, total - n * unit), b"\0")
    text = text[at % unit:at % unit + count]
    need(len(text) == count, "%s ends too early" % path)
    return text
# ---- The functions of varve-read.py that these replace ----
def read(path, at=0, count=None):
    if sealed_place(path): return read_sealed(path, at, count)
    if count is None or not path.endswith((".seg", ".vol")): return read_disk(path, at, count)
    here = known[path]
    if count == 128 or at in here[bisect.bisect_left(here, at):][:1]:
        found = container(path, at)
        if found and at not in here[bisect.bisect_left(here, at):][:1]: bisect.insort(here, at)
        need(found, "no sealed container at byte %d" % at)
        need(len(found.head) >= count, "the container at byte %d is too short" % at)
        return found.head[:count]
    return read_disk(path, at, count)
def records(path, at, kind, series, version, lost=None):
    for number, key, value in read_records(path, at, kind, series, version, lost):
        end = number == 0 and key == 0 and path.endswith("labels")  # The next update begins a block.
        yield number, key, -(-value // 512) * 512 if end else value
plain.read, plain.records, plain.check_superblock = read, records, check_superblock
plain.Store.frame = staticmethod(functools.lru_cache(512)(frame))
def main(args):
    if len(args) < 4 or args[1] not in ("--passphrase-file", "--key-file"):
        sys.exit(print(__doc__.split("\n\n")[1], file=sys.stderr) or 2)
    try:
        with open(0 if args[2] == "-" else args[2], "rb") as file: secret = file.read(8192)
    except OSError as error: fail(1, "%s: %s" % (args[2], error.strerror))
    repository.secret = secret, args[1] == "--key-file"
    plain.main(args[:1] + args[3:])
if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")
    try: main(sys.argv)
    except KeyboardInterrupt: sys.exit(130)
    except (Damage, OSError) as error: fail(1, error)
    sys.exit(3 if plain.problems else 0)
