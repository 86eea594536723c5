# SPDX-License-Identifier: Apache-2.0
"""XXH3-64 with seed 0, the checksum of the format, in plain Python."""
import operator
import struct

MASK = (1 << 64) - 1
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
STRIPE_KEYS = b"".join(SECRET[8 * n:8 * n + 64] for n in range(16))
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


def le(data, at, size=8):
    return int.from_bytes(data[at:at + size], "little")


def fold(a, b):
    return a * b & MASK ^ a * b >> 64


def avalanche(h, first=37, factor=0x165667919E3779F9):
    h = (h & MASK ^ (h & MASK) >> first) * factor & MASK
    return h ^ h >> 32


def xxh3(data):
    """Returns the checksum of some bytes."""
    def mix(at, key):
        return fold(le(data, at) ^ le(SECRET, key), le(data, at + 8) ^ le(SECRET, key + 8))
    n = len(data)
    if n > 240:
        return xxh3_long(data, n)
    if n > 128:
        h = avalanche(n * P1 + sum(mix(16 * i, 16 * i) for i in range(8)))
        return avalanche(h + sum(mix(16 * i, 16 * i - 125) for i in range(8, n // 16)) + mix(n - 16, 119))
    if n > 16:
        return avalanche(n * P1 + sum(mix(16 * i, 32 * i) + mix(n - 16 - 16 * i, 32 * i + 16)
                                      for i in range((n - 1) // 32 + 1)))
    if n > 8:
        low, high = le(data, 0) ^ le(SECRET, 24) ^ le(SECRET, 32), le(data, n - 8) ^ le(SECRET, 40) ^ le(SECRET, 48)
        return avalanche(n + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high))
    if n > 3:
        h = (le(data, n - 4, 4) | le(data, 0, 4) << 32) ^ le(SECRET, 8) ^ le(SECRET, 16)
        h = (h ^ h << 49 ^ h >> 15 ^ h << 24 ^ h >> 40) * 0x9FB21C651E98DF25 & MASK
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & MASK
        return h ^ h >> 28
    h = le(SECRET, 56) ^ le(SECRET, 64)
    if n:
        h = (data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8) ^ le(SECRET, 0, 4) ^ le(SECRET, 4, 4)
    return avalanche((h ^ h >> 33) * P2, 29, P3)


def xxh3_long(data, n):
    lanes = [0xC2B2AE3D, P1, P2, P3, P4, 0x85EBCA77, P5, 0x9E3779B1]
    def add(piece, keys):  # whole stripes, at most a block
        mixed = int.from_bytes(piece, "little") ^ int.from_bytes(keys, "little")
        halves = struct.unpack("<%dI" % (len(piece) // 4), mixed.to_bytes(len(piece), "little"))
        words = struct.unpack("<%dQ" % (len(piece) // 8), piece)
        products = list(map(operator.mul, halves[::2], halves[1::2]))
        for i in range(8):
            lanes[i] = lanes[i] + sum(words[i ^ 1::8]) + sum(products[i::8]) & MASK
    end = (n - 1) // 1024 * 1024
    for at in range(0, end, 1024):
        add(data[at:at + 1024], STRIPE_KEYS)
        for i in range(8):
            lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ le(SECRET, 128 + 8 * i)) * 0x9E3779B1 & MASK
    stripes = (n - 1 - end) // 64 * 64
    add(data[end:end + stripes], STRIPE_KEYS[:stripes])
    add(data[n - 64:], SECRET[121:185])
    return avalanche(n * P1 + sum(fold(lanes[i] ^ le(SECRET, 11 + 8 * i), lanes[i + 1] ^ le(SECRET, 19 + 8 * i))
                                  for i in range(0, 8, 2)))
