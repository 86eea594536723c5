#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Header lines that a source pulls in: the project's and those of libraries, without the standard library's; and
rooms that a source must not depend on.

The includes are followed in the text, so conditions do not count. Headers of a library that is not installed
count as empty.
"""

import os
import sys

import tree

LINES_MAX = 15000
LIBRARIES = ("/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu")
# The first part of the path of a library's header, below its include folder.
OF_LIBRARIES = ("CLI", "archive.h", "archive_entry.h", "argon2.h", "boost", "coin", "curl", "expat.h", "fmt", "fuse3",
                "isa-l", "isa-l.h", "lmdb.h", "lzma.h", "nlohmann", "openssl", "xxhash.h", "zlib.h", "zstd.h")
# fmt/core.h includes fmt/format.h only for programs without fmt's library.
WITHOUT_INCLUDES = ("fmt/core.h",)
EXCEPTIONS = {
    "src/bucket/s3_headers.cc": "formats times with fmt",
    "src/bucket/signer.cc": "formats times with fmt",
    "src/control/json.cc": "the one source with nlohmann-json",
    "src/crypto/aead.cc": "OpenSSL's ciphers",
    "src/crypto/hmac.cc": "OpenSSL's codes",
    "src/format/fingerprinter.cc": "OpenSSL's digests",
    "src/remote/object_uploader.cc": "a hash of 128 bits with a seed, which base has not",
    "src/transfer/archive_input.cc": "libarchive and OpenSSL's digests",
    "src/web/request.cc": "the one source with Boost.Beast",
}
# Rooms whose sources depend on no header of another room, not even through other headers: a change there compiles
# none of their sources again.
APART = {"src/layout/": ("src/remote/",), "src/restore/": ("src/remote/",), "src/version/": ("src/remote/",)}


def find(name, quoted, source):
    """The path of an included header, or None for one of the standard library or of the system."""
    below = [os.path.dirname(source)] if quoted else []
    for folder in below + ["src", "include", "src/web"]:
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(tree.ROOT, path)):
            return path
    for folder in LIBRARIES:
        if name.split("/")[0] in OF_LIBRARIES or quoted and source.startswith("/"):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    if quoted and source.startswith("/"):
        path = os.path.normpath(os.path.join(os.path.dirname(source), name))
        return path if os.path.isfile(path) else None
    return None


class Headers:
    """The lines and the includes of each header, read once."""

    def __init__(self, read=tree.read, includes=tree.includes, finder=find):
        self.read, self.includes, self.find = read, includes, finder
        self.known = {}

    def look(self, path):
        if path not in self.known:
            included = []
            if not path.endswith(WITHOUT_INCLUDES):
                found = [self.find(name, quoted, path) for _, quoted, name in self.includes(path)]
                included = [one for one in found if one]
            self.known[path] = (self.read(path).count("\n"), included)
        return self.known[path]

    def all_of(self, source):
        seen, waiting = set(), list(self.look(source)[1])
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen.add(path)
                waiting += self.look(path)[1]
        return seen

    def lines_of(self, source):
        return sum(self.look(path)[0] for path in self.all_of(source))

    def forbidden(self, source, apart):
        """The headers that the source depends on, of rooms that `apart` keeps from the source's room."""
        rooms = tuple(room for own, others in apart.items() if source.startswith(own) for room in others)
        return sorted(path for path in self.all_of(source) if rooms and path.startswith(rooms))


def main():
    headers = Headers()
    sources = tree.files((".cc",), "src")
    problems = []
    for source in sources:
        problems += [f"{source}: depends on {path}: declare the type where a pointer is enough"
                     for path in headers.forbidden(source, APART)]
        if source in EXCEPTIONS:
            continue
        lines = headers.lines_of(source)
        if "-v" in sys.argv:
            print(lines, source)
        if lines > LINES_MAX:
            problems.append(f"{source}: pulls {lines} lines of headers in, at most {LINES_MAX}: declare classes "
                            "where a pointer is enough")
    problems += [f"{path}: there is no such source" for path in EXCEPTIONS if path not in sources]
    tree.finish("sources pull few header lines in", len(sources), problems)


if __name__ == "__main__":
    main()
