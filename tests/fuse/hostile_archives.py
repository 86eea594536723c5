#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes archives to a folder: bad-* must be refused, good-* are odd but whole.

usage: hostile_archives.py FOLDER
"""

import bz2
import gzip
import io
import lzma
import os
import struct
import sys
import tarfile
import zipfile
import zlib

APART = "cafe\u0301"  # The same text as the next, but other bytes.
TOGETHER = "caf\u00e9"


def write_zip(folder, name, members, system=3):
    """Writes members of (name, data); the name's bytes are kept."""
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        for path, data in members:
            info = zipfile.ZipInfo("x")
            info.filename = path
            info.create_system = system
            info.external_attr = 0o100644 << 16 if system == 3 else 0
            archive.writestr(info, data)


def write_names(folder):
    """Archives with names that libarchive alters."""
    link = {"kind": tarfile.SYMTYPE, "target": APART}
    write(folder, "good-names.tar",
          [member(APART, b"apart"), member(TOGETHER, b"together"), member("sym", **link),
           member("hard", kind=tarfile.LNKTYPE, target=APART)])
    write_zip(folder, "good-names.zip",
              [(APART, b"apart"), (TOGETHER, b"together"), ("d" + APART + "/", b""),
               ("A\\B", b"one"), ("A/B", b"two"), (TOGETHER + "\\x", b"x")])
    write_zip(folder, "good-dos.zip", [("A\\B", b"one"), ("A\\C", b"two")], system=0)
    write_zip(folder, "bad-dos.zip", [("A\\B", b"one"), ("A/B", b"two")], system=0)
    write_zip(folder, "bad-backslash.zip", [("A\\", b"one")])


def write_acls(folder):
    acl = "user::rw{x},user:12345:rw{x},group::r{g},mask::rw{x},other::r{g}\n"
    for_file = {"SCHILY.acl.access": acl.format(x="-", g="--")}
    for_directory = {"SCHILY.acl.access": acl.format(x="x", g="-x")}
    write(folder, "good-acl.tar",
          [member("file", b"x", mode=0o664, pax_headers=for_file),
           member("dir", kind=tarfile.DIRTYPE, mode=0o775, pax_headers=for_directory),
           member("suid", b"x", mode=0o4774, pax_headers={
               "SCHILY.acl.access": acl.format(x="x", g="--")})])
    write(folder, "odd-acl.tar", [member("file", b"x", mode=0o664, pax_headers={
        "SCHILY.acl.access": acl.format(x="-", g="--") + ",us"})])
    write(folder, "odd-mtime.tar", [member("file", b"x", pax_headers={"mtime": "9" * 30})])


def xz_with(data, dictionary):
    """An .xz file whose header asks for a dictionary of 2 ** dictionary bytes."""
    packed = bytearray(lzma.compress(data, preset=0))
    header, size = 12, 4 * (packed[12] + 1)
    assert packed[header + 1:header + 4] == b"\0\x21\1", "the header has one filter, LZMA2"
    packed[header + 4] = 2 * (dictionary - 12)
    end = header + size - 4
    packed[end:end + 4] = struct.pack("<I", zlib.crc32(packed[header:end]))
    return bytes(packed)


def lzma_with(data, dictionary):
    packed = bytearray(lzma.compress(data, format=lzma.FORMAT_ALONE, preset=0))
    packed[1:5] = struct.pack("<I", 1 << dictionary)
    return bytes(packed)


def zstd_with(data, window):
    """A frame of zstd with raw blocks and a window of 2 ** window bytes."""
    parts = [data[at:at + 100000] for at in range(0, len(data), 100000)]
    frame = b"\x28\xb5\x2f\xfd\0" + bytes([(window - 10) << 3])
    for number, part in enumerate(parts):
        frame += struct.pack("<I", len(part) << 3 | (number == len(parts) - 1))[:3] + part
    return frame


def write_windows(folder):
    """Archives whose decoders take much memory."""
    data = write(folder, "good-plain.tar", [member("file", b"content" * 1000)])
    for name, packed in (
            ("good-window.tar.xz", xz_with(data, 27)), ("bad-window.tar.xz", xz_with(data, 30)),
            ("bad-second-window.tar.xz", xz_with(data, 20) + xz_with(data, 30)),
            ("good-window.tar.lzma", lzma_with(data, 27)), ("bad-window.tar.lzma", lzma_with(data, 29)),
            ("good-window.tar.zst", zstd_with(data, 27)), ("bad-window.tar.zst", zstd_with(data, 31)),
            ("bad-second-window.tar.zst", zstd_with(data, 20) + zstd_with(data, 31)),
            ("bad-twice.tar.zst", zstd_with(zstd_with(data, 27), 27)),
            ("bad-twice.tar.bz2", bz2.compress(bz2.compress(data)))):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(packed)
    for name, method in ("good", zipfile.ZIP_BZIP2), ("bad", zipfile.ZIP_LZMA):
        with zipfile.ZipFile(os.path.join(folder, f"{name}-method.zip"), "w", method) as archive:
            archive.writestr("file", b"content" * 1000)


def member(name, data=b"", kind=tarfile.REGTYPE, target="", **more):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    info.size = len(data)
    info.mtime = 1000000000
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def write(folder, name, members, kind=tarfile.PAX_FORMAT):
    path = os.path.join(folder, name)
    with tarfile.open(path, "w", format=kind) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    with open(path, "rb") as file:
        return file.read()


def main(folder):
    os.makedirs(folder)
    write_names(folder)
    write_acls(folder)
    write_windows(folder)
    for kind in ("", "gz", "bz2", "xz"):
        with tarfile.open(os.path.join(folder, f"bad-zero-{kind}.tar"), f"w:{kind}",
                          format=tarfile.PAX_FORMAT) as archive:
            for path in ("a", "a\0b"):
                info, data = member("long" * 9, b"x", pax_headers={"path": path})
                archive.addfile(info, io.BytesIO(data))
    directory = member("dir", kind=tarfile.DIRTYPE, mode=0o755)
    write(folder, "bad-up.tar", [member("a/../../etc/passwd", b"x")])
    write(folder, "bad-up-last.tar", [member("fine", b"x"), member("..", b"x")])
    write(folder, "bad-through-link.tar",
          [member("link", kind=tarfile.SYMTYPE, target="/etc"), member("link/passwd", b"x")])
    write(folder, "bad-link-to-nothing.tar", [member("b", kind=tarfile.LNKTYPE, target="a")])
    write(folder, "bad-link-up.tar",
          [member("b", kind=tarfile.LNKTYPE, target="../../etc/passwd")])
    write(folder, "bad-link-to-directory.tar",
          [directory, member("b", kind=tarfile.LNKTYPE, target="dir")])
    write(folder, "bad-long-component.tar", [member("n" * 300, b"x")])
    write(folder, "bad-below-file.tar", [member("a", b"x"), member("a/b", b"x")])
    write(folder, "bad-full-directory.tar", [directory, member("dir/a", b"x"), member("dir", b"x")])
    write(folder, "bad-deep.tar", [member("d/" * 20000 + "f", b"x")])
    write(folder, "good-absolute.tar", [member("/etc/passwd", b"mine")])
    write(folder, "good-links.tar", [member("out", kind=tarfile.SYMTYPE, target="../../.."),
                                     member("a", b"x"),
                                     member("b", kind=tarfile.LNKTYPE, target="./a")])
    write(folder, "good-owner.tar", [member("a", b"x", uid=3000000000, gid=7)])
    write(folder, "good-empty.tar", [])
    write(folder, "good-long.tar", [member("/".join(["p" * 200] * 30), b"x")])
    write(folder, "good-fifo.tar", [member("fifo", kind=tarfile.FIFOTYPE)])
    twice = write(folder, "good-twice.tar", [member("file", b"first"), member("file", b"second")])
    # Every truncation must be noticed, also one between two members and one without end mark.
    for end in (1, 511, 512, 700, 1024, 1536, 2047, 2048):
        if end < len(twice):
            with open(os.path.join(folder, f"bad-cut-{end}.tar"), "wb") as file:
                file.write(twice[:end])
    # So must that of compressed data behind the end mark, where their checksums are.
    for kind, packed in (("gz", gzip.compress(twice)), ("bz2", bz2.compress(twice)),
                         ("xz", lzma.compress(twice))):
        with open(os.path.join(folder, f"good-whole-{kind}"), "wb") as file:
            file.write(packed)
        for cut in (1, 5, len(packed) // 2):
            with open(os.path.join(folder, f"bad-cut-{kind}-{cut}"), "wb") as file:
                file.write(packed[:-cut])
    with open(os.path.join(folder, "bad-random"), "wb") as file:
        file.write(bytes(range(256)) * 40)
    with open(os.path.join(folder, "bad-nothing"), "wb"):
        pass


if __name__ == "__main__":
    main(sys.argv[1])
