// SPDX-License-Identifier: Apache-2.0
#include "ingest/keyed_tables.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <utility>

#include "base/coding.h"
#include "crypto/aead.h"
#include "crypto/secret_key.h"

namespace varve::ingest {
namespace {

// The least number of hash bits that end a chunk: the loose mask of the smallest average, 4096.
constexpr unsigned kLooseBitsLeast = 10;
constexpr unsigned kAvgBitsLeast = 12;
constexpr unsigned kAvgBitsMost = 14;

/// Returns 32 secret bytes: the block `number` of a stream.
Result<crypto::SecretKey> block_of(const crypto::KeyRing& keys, std::string_view stream,
                                   std::uint32_t number) {
  std::array<std::byte, 4> salt{};
  base::store_le(salt.data(), number);
  return crypto::derive_key(keys.key(crypto::Purpose::kChunker), salt, stream);
}

/// Returns whether an 8 × 8 matrix over GF(2) has an inverse. Each byte is a row.
bool is_invertible(std::uint64_t matrix) {
  std::array<unsigned, 8> rows{};
  for (unsigned i = 0; i < 8; ++i) rows[i] = static_cast<unsigned>(matrix >> (8 * i)) & 0xffU;
  for (unsigned bit = 0; bit < 8; ++bit) {
    const auto has_bit = [&](unsigned row) { return ((row >> bit) & 1U) != 0; };
    const auto pivot = std::find_if(rows.begin() + bit, rows.end(), has_bit);
    if (pivot == rows.end()) return false;
    std::iter_swap(rows.begin() + bit, pivot);
    for (unsigned i = bit + 1; i < 8; ++i) {
      if (has_bit(rows[i])) rows[i] ^= rows[bit];
    }
  }
  return true;
}

/// Returns whether zeros end a chunk of some average within the first 64 bytes after `min`, after
/// which the hash stays the same.
bool cuts_zeros(const FastCdcTable& table) {
  std::uint64_t hash = 0;
  for (unsigned i = 0; i < 64; ++i) {
    hash = (hash << 1) + table[0];
    for (unsigned bits = kAvgBitsLeast; bits <= kAvgBitsMost; ++bits) {
      if ((hash & fastcdc_mask(bits + 2)) == 0 || (hash & fastcdc_mask(bits - 2)) == 0) return true;
    }
  }
  return false;
}

}  // namespace

bool is_good_gear16_table(const Gear16Table& table) {
  if (!is_invertible(table.matrix_low) || !is_invertible(table.matrix_high) ||
      !is_invertible(table.matrix_low ^ table.matrix_high)) {
    return false;
  }
  // The hash of 16 equal bytes is minus the byte's entry.
  return std::ranges::none_of(table.entries, [](std::uint16_t entry) {
    return static_cast<std::uint16_t>(-entry) >> (16 - kLooseBitsLeast) == 0;
  });
}

Result<Gear16Table> derive_gear16_table(const crypto::KeyRing& keys) {
  // About 1 in 70 pairs of matrices is good.
  for (std::uint32_t number = 0;; ++number) {
    VARVE_TRY_ASSIGN(const auto block, block_of(keys, "varve gear16", number));
    const auto bytes = block.bytes();
    const auto table = make_gear16_table(base::load_le<std::uint64_t>(bytes.data()),
                                         base::load_le<std::uint64_t>(bytes.data() + 8));
    if (is_good_gear16_table(table)) return table;
  }
}

Result<FastCdcTable> derive_fastcdc_table(const crypto::KeyRing& keys) {
  for (std::uint32_t number = 0;;) {
    FastCdcTable table{};
    for (std::size_t i = 0; i < table.size(); i += 4, ++number) {
      VARVE_TRY_ASSIGN(const auto block, block_of(keys, "varve fastcdc2020", number));
      for (std::size_t k = 0; k < 4; ++k) {
        table[i + k] = base::load_le<std::uint64_t>(block.bytes().data() + 8 * k);
      }
    }
    if (!cuts_zeros(table)) return table;
  }
}

Result<std::unique_ptr<Chunker>> make_keyed_gear16(ChunkSizes sizes, Gear16Form form,
                                                   const crypto::KeyRing& keys) {
  VARVE_TRY_ASSIGN(const auto table, derive_gear16_table(keys));
  return std::unique_ptr<Chunker>(
      std::make_unique<Gear16Chunker>(kKeyedGear16Id, sizes, form, table));
}

Result<std::unique_ptr<Chunker>> make_keyed_fastcdc(ChunkSizes sizes, const crypto::KeyRing& keys) {
  VARVE_TRY_ASSIGN(const auto table, derive_fastcdc_table(keys));
  return std::unique_ptr<Chunker>(std::make_unique<FastCdcChunker>(kKeyedFastCdcId, sizes, table));
}

}  // namespace varve::ingest
