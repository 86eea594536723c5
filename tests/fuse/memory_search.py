#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a text is in the memory of a process, or a key outside of its locked memory.

usage: memory_search.py PID TEXT   Root only.
       memory_search.py PID --keys REPO KEYFILE   The keys of a repository that a key file opens. They
       must be in locked memory that no core has, and nowhere else but for those that OpenSSL keeps
       expanded (docs/ENCRYPTION.md, "Memory").
"""

import hashlib
import hmac
import subprocess
import sys

PURPOSES = ["containers", "catalog", "overlay", "names", "files", "staging", "slots", "chunker"]
EXPANDED = {"names"}


def regions(pid):
    """(begin, end, whether it is locked and in no core) of each region that can be read."""
    with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as maps:
        present = None
        for line in maps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                begin, end = (int(part, 16) for part in words[0].split("-"))
                readable = words[1].startswith("r") and "[v" not in line
                present = (begin, end) if readable else None
            elif words[0] == "VmFlags:" and present:
                yield *present, {"lo", "dd"} <= set(words)


def search(pid, wanted):
    """(text, whether it is in locked memory) of each place with one of the texts."""
    searched = 0
    longest = max(len(text) for text in wanted)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end, locked in regions(pid):
            for at in range(begin, end, 1 << 20):
                memory.seek(at)
                try:
                    piece = memory.read(min((1 << 20) + longest, end - at))
                except OSError:
                    break  # Behind the end of the file that is mapped.
                searched += len(piece)
                for text in wanted:
                    if text in piece:
                        yield text, locked
    if searched < 1 << 20:
        sys.exit(f"FAILED: only {searched} bytes of memory could be read")


def hkdf(key, salt, info):
    """HKDF-SHA-256 (RFC 5869) with 32 bytes of output."""
    extracted = hmac.new(salt, key, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\1", hashlib.sha256).digest()


def keys_of(repo, key_file):
    """Name -> key, from the slot of the key file (docs/FORMAT.md §14.1)."""
    lines = {}
    with open(f"{repo}/varve.repo", encoding="utf-8") as superblock:
        for line in superblock:
            key, _, value = line.strip().partition(" = ")
            lines[key] = value
    slots = [value.split() for key, value in lines.items() if key.startswith("key_slot_")]
    slot = next(slot for slot in slots if slot[0] == "key-file")
    with open(key_file, "rb") as file:
        slot_key = hkdf(file.read(), bytes.fromhex(slot[3]), b"varve slot")
    sealing = hkdf(slot_key, bytes.fromhex(slot[3]), b"varve slot sealing")
    # GCM encrypts as CTR does, from the counter 2 on. The nonce is zeros.
    master = subprocess.run(["openssl", "enc", "-d", "-aes-256-ctr", "-K", sealing.hex(), "-iv",
                             "0" * 31 + "2"], input=bytes.fromhex(slot[5])[:32],
                            capture_output=True, check=True).stdout
    keys = {"master": master}
    for purpose in PURPOSES:
        keys[purpose] = hkdf(master, lines["repository_id"].encode(), b"varve " + purpose.encode())
    return keys


def main():
    pid = int(sys.argv[1])
    if sys.argv[2] != "--keys":
        for _, _ in search(pid, [sys.argv[2].encode()]):
            sys.exit("FAILED: the text is in memory")
        return
    keys = keys_of(*sys.argv[3:5])
    names = {key: name for name, key in keys.items()}
    found = set()
    for key, locked in search(pid, list(names)):
        if not locked and names[key] not in EXPANDED:
            sys.exit(f"FAILED: the key `{names[key]}` is in memory that is not locked")
        found.add(names[key])
    if not {"containers", "catalog"} <= found:
        sys.exit(f"FAILED: the search finds only {sorted(found)}")


if __name__ == "__main__":
    main()
