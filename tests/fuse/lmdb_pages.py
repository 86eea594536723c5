#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the bytes that an LMDB file really uses. Its size also counts free pages.

usage: lmdb_pages.py data.mdb

Sums the page counts in the records of the databases (MDB_db), of LMDB 0.9 on 64-bit machines.
"""

import struct
import sys

PAGE_HEADER, META_DBS, DB_BYTES = 16, 24, 48
NO_PAGE = (1 << 64) - 1
LEAF, BRANCH = 0x02, 0x01
NODE_SUBDATA = 0x02


class Database:
    def __init__(self, record):
        (self.page_bytes, _, _, branch, leaf, overflow, _, self.root) = struct.unpack_from(
            "<IHHQQQQQ", record)
        self.pages = branch + leaf + overflow


def newest_meta(image):
    """Returns the main database's record in the meta page with the higher transaction number."""
    page_bytes = struct.unpack_from("<I", image, PAGE_HEADER + META_DBS)[0]
    metas = []
    for at in (PAGE_HEADER, page_bytes + PAGE_HEADER):
        transaction = struct.unpack_from("<Q", image, at + META_DBS + 2 * DB_BYTES + 8)[0]
        metas.append((transaction, image[at + META_DBS + DB_BYTES:at + META_DBS + 2 * DB_BYTES]))
    return page_bytes, max(metas)[1]


def named_databases(image, page_bytes, root):
    """Returns the records of the named databases, which are values of the main one."""
    at = root * page_bytes
    _, _, flags, lower, _ = struct.unpack_from("<QHHHH", image, at)
    for slot in range((lower - PAGE_HEADER) // 2):
        node = at + struct.unpack_from("<H", image, at + PAGE_HEADER + 2 * slot)[0]
        low, high, node_flags, key_bytes = struct.unpack_from("<HHHH", image, node)
        if flags & BRANCH:
            yield from named_databases(image, page_bytes, low | high << 16 | node_flags << 32)
        elif flags & LEAF and node_flags & NODE_SUBDATA:
            value = node + 8 + key_bytes
            yield image[value:value + DB_BYTES]


def main():
    with open(sys.argv[1], "rb") as file:
        image = file.read()
    page_bytes, record = newest_meta(image)
    databases = [Database(record)]
    if databases[0].root != NO_PAGE:
        databases += [Database(r) for r in named_databases(image, page_bytes, databases[0].root)]
    print(sum(database.pages for database in databases) * page_bytes)


if __name__ == "__main__":
    main()
