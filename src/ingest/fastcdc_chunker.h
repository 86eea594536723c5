// SPDX-License-Identifier: Apache-2.0
// FastCDC with two bytes a step (Xia et al., IEEE TPDS 31(9), 2020, §3.7).
//
// A 64-bit Gear hash that starts at zero after the `min` skipped bytes, and normalised chunking
// of level 2: avg_bits+2 mask bits before avg, avg_bits-2 from avg on. The boundaries are those
// of a Gear that goes byte by byte; two bytes share one shift.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ingest/chunker.h"

namespace varve::ingest {

class FastCdcChunker final : public Chunker {
 public:
  static constexpr std::string_view kId = "fastcdc2020";

  /// Creates the chunker. `sizes` must obey its ChunkSizeRule.
  explicit FastCdcChunker(ChunkSizes sizes);

  [[nodiscard]] std::size_t next(std::span<const std::byte> data) const override;
  [[nodiscard]] ChunkSizes sizes() const override { return sizes_; }
  [[nodiscard]] std::string_view id() const override { return kId; }

  /// Returns the Gear hash after `next`, given the hash before it.
  [[nodiscard]] static std::uint64_t roll(std::uint64_t hash, std::byte next);
  [[nodiscard]] std::uint64_t strong_mask() const { return strong_; }
  [[nodiscard]] std::uint64_t loose_mask() const { return loose_; }

 private:
  ChunkSizes sizes_;
  std::uint64_t strong_;
  std::uint64_t loose_;
};

}  // namespace varve::ingest
