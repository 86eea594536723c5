// SPDX-License-Identifier: Apache-2.0
// FastCDC with two bytes a step (Xia et al., IEEE TPDS 31(9), 2020, §3.7).
//
// A 64-bit Gear hash, starting at zero after the `min` skipped bytes, and normalised chunking of
// level 2: avg_bits+2 mask bits before avg, avg_bits-2 from avg on. The boundaries equal the
// boundaries of a byte-by-byte Gear; two bytes share one shift.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ingest/chunker.h"

namespace varve::ingest {

/// The gear table.
using FastCdcTable = std::array<std::uint64_t, 256>;

class FastCdcChunker final : public Chunker {
 public:
  static constexpr std::string_view kId = "fastcdc2020";

  /// Creates the chunker. `sizes` must obey the chunker's ChunkSizeRule.
  explicit FastCdcChunker(ChunkSizes sizes);
  /// Creates a keyed chunker, under its own id.
  FastCdcChunker(std::string_view keyed_id, ChunkSizes sizes, const FastCdcTable& table);

  [[nodiscard]] std::size_t next(std::span<const std::byte> data) const override;
  [[nodiscard]] ChunkSizes sizes() const override { return sizes_; }
  [[nodiscard]] std::string_view id() const override { return id_; }

  /// Returns the Gear hash after `next`, given the hash before `next`.
  [[nodiscard]] std::uint64_t roll(std::uint64_t hash, std::byte next) const;
  [[nodiscard]] std::uint64_t strong_mask() const { return strong_; }
  [[nodiscard]] std::uint64_t loose_mask() const { return loose_; }

  /// The table and its entries shifted by one bit.
  struct Tables {
    FastCdcTable gear;
    FastCdcTable shifted;
  };

 private:
  std::string_view id_;
  std::unique_ptr<const Tables> keyed_;  // Null without a key.
  const Tables* tables_;
  ChunkSizes sizes_;
  std::uint64_t strong_;
  std::uint64_t loose_;
};

/// Returns the mask of `count` bits of a hash.
[[nodiscard]] std::uint64_t fastcdc_mask(unsigned count);

}  // namespace varve::ingest
