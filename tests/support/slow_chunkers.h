// SPDX-License-Identifier: Apache-2.0
// The chunkers as FORMAT.md §14.5 describes them, one sum and one bit at a time: an oracle that
// shares no code with src/ingest.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "crypto/aead.h"
#include "crypto/key_ring.h"
#include "ingest/chunker.h"
#include "support/temp_repository.h"

namespace varve::ingest::test {

/// Returns a * b modulo x^8 + x^4 + x^3 + x + 1.
inline unsigned slow_product(unsigned a, unsigned b) {
  unsigned product = 0;
  for (unsigned i = 0; i < 8; ++i) product ^= ((b >> i) & 1U) != 0 ? a << i : 0;
  for (unsigned i = 15; i >= 8; --i) product ^= ((product >> i) & 1U) != 0 ? 0x11bU << (i - 8) : 0;
  return product;
}

/// Returns bit `bit` of the product of a matrix and a column of eight bits.
inline unsigned slow_row(std::uint64_t matrix, unsigned bit, unsigned column) {
  unsigned sum = 0;
  for (unsigned k = 0; k < 8; ++k) sum ^= (matrix >> (8 * (7 - bit) + k)) & (column >> k) & 1U;
  return sum;
}

using SlowGear16Table = std::array<std::uint32_t, 256>;

/// Returns the inverse of each byte, 0 for 0.
inline std::array<unsigned, 256> slow_inverses() {
  std::array<unsigned, 256> inverses{};
  for (unsigned b = 1; b < 256; ++b) {
    while (slow_product(b, inverses[b]) != 1) ++inverses[b];
  }
  return inverses;
}

inline SlowGear16Table slow_gear16_table(std::uint64_t low, std::uint64_t high) {
  static const std::array<unsigned, 256> inverses = slow_inverses();
  SlowGear16Table table{};
  for (unsigned b = 0; b < 256; ++b) {
    const unsigned inverse = inverses[b];
    unsigned entry = 0xb27a;
    for (unsigned bit = 0; bit < 8; ++bit) {
      entry ^= slow_row(low, bit, inverse) << bit;
      entry ^= slow_row(high, bit, inverse) << (bit + 8);
    }
    table[b] = entry;
  }
  return table;
}

/// Counts the images of a matrix: 256 if it is invertible.
inline bool slow_is_invertible(std::uint64_t matrix) {
  std::array<bool, 256> seen{};
  for (unsigned x = 0; x < 256; ++x) {
    unsigned image = 0;
    for (unsigned bit = 0; bit < 8; ++bit) image |= slow_row(matrix, bit, x) << bit;
    seen[image] = true;
  }
  return std::ranges::all_of(seen, [](bool one) { return one; });
}

inline std::array<std::uint64_t, 4> slow_block(const crypto::KeyRing& keys, std::string_view info,
                                               std::uint32_t number) {
  std::array<std::byte, 4> salt{};
  for (unsigned i = 0; i < 4; ++i) salt[i] = static_cast<std::byte>(number >> (8 * i));
  const auto key =
      varve::test::must(crypto::derive_key(keys.key(crypto::Purpose::kChunker), salt, info));
  std::array<std::uint64_t, 4> words{};
  for (unsigned i = 0; i < 32; ++i) {
    words[i / 8] |= std::to_integer<std::uint64_t>(key.bytes()[i]) << (8 * (i % 8));
  }
  return words;
}

inline SlowGear16Table slow_gear16_table(const crypto::KeyRing& keys) {
  for (std::uint32_t number = 0;; ++number) {
    const auto words = slow_block(keys, "varve gear16", number);
    const auto table = slow_gear16_table(words[0], words[1]);
    const bool no_run_ends = std::ranges::all_of(table, [](std::uint32_t entry) {
      std::uint32_t hash = 0;
      for (unsigned k = 0; k < 16; ++k) hash += entry << k;
      return (hash & 0xffffU) >= 64;
    });
    if (no_run_ends && slow_is_invertible(words[0]) && slow_is_invertible(words[1]) &&
        slow_is_invertible(words[0] ^ words[1])) {
      return table;
    }
  }
}

/// Returns the length of the chunk at data[0].
inline std::size_t slow_gear16(const SlowGear16Table& table, ChunkSizes sizes,
                               std::span<const std::byte> data) {
  const std::size_t end = std::min<std::size_t>(sizes.max, data.size());
  for (std::size_t i = sizes.min; i < end; ++i) {
    std::uint32_t hash = 0;
    for (std::size_t k = 0; k < 16; ++k) {
      hash += table[std::to_integer<unsigned>(data[i - k])] << k;
    }
    const std::uint32_t share = i < sizes.avg ? 4 * sizes.avg : sizes.avg / 4;
    if ((hash & 0xffffU) < 65536 / share) return i + 1;
  }
  return end;
}

using SlowFastCdcTable = std::array<std::uint64_t, 256>;

inline SlowFastCdcTable slow_fastcdc_table() {
  SlowFastCdcTable table{};
  std::uint64_t state = 0;
  for (auto& entry : table) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    entry = z ^ (z >> 31);
  }
  return table;
}

/// Returns whether the bits 62 - floor(48 i / count), for i from 0 to count - 1, are all zero.
inline bool slow_fastcdc_ends(std::uint64_t hash, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (((hash >> (62 - 48 * i / count)) & 1U) != 0) return false;
  }
  return true;
}

inline SlowFastCdcTable slow_fastcdc_table(const crypto::KeyRing& keys) {
  for (std::uint32_t begin = 0;; begin += 64) {
    SlowFastCdcTable table{};
    for (std::uint32_t i = 0; i < 64; ++i) {
      const auto words = slow_block(keys, "varve fastcdc2020", begin + i);
      std::ranges::copy(words, table.begin() + 4 * i);
    }
    bool ends = false;
    for (unsigned zeros = 1; zeros <= 64; ++zeros) {
      std::uint64_t hash = 0;
      for (unsigned k = 0; k < zeros; ++k) hash += table[0] << k;
      for (const unsigned count : {10U, 11U, 12U, 14U, 15U, 16U}) {
        ends = ends || slow_fastcdc_ends(hash, count);
      }
    }
    if (!ends) return table;
  }
}

inline std::size_t slow_fastcdc(const SlowFastCdcTable& table, ChunkSizes sizes,
                                std::span<const std::byte> data) {
  const std::size_t end = std::min<std::size_t>(sizes.max, data.size());
  unsigned bits = 0;
  while ((sizes.avg >> bits) != 1) ++bits;
  std::uint64_t hash = 0;
  for (std::size_t i = sizes.min; i < end; ++i) {
    hash = 2 * hash + table[std::to_integer<unsigned>(data[i])];
    if (slow_fastcdc_ends(hash, i < sizes.avg ? bits + 2 : bits - 2)) return i + 1;
  }
  return end;
}

}  // namespace varve::ingest::test
