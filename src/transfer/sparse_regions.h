// SPDX-License-Identifier: Apache-2.0
// Finds the parts of a file with holes to store in an archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transfer/file_sink.h"

namespace varve::transfer {

/// Collects the data ranges of a file. Rounds the ranges outwards to the blocks of an archive, and
/// joins touching or overlapping ranges. Memory is bounded: with more than `regions_max` regions,
/// the shortest holes become data, without changing any byte of the file. Not thread-safe.
class SparseRegions {
 public:
  static constexpr std::uint64_t kBlockBytes = 512;
  static constexpr std::size_t kRegionsMax = std::size_t{1} << 18;

  explicit SparseRegions(std::uint64_t file_bytes, std::size_t regions_max = kRegionsMax)
      : file_bytes_(file_bytes), regions_max_(regions_max) {}

  /// Adds a range of data. The range must begin at or after the end of the last range.
  void add(ByteRange range);
  /// Returns the regions, ascending; nullopt if the whole file is data. The last region ends with
  /// the file, and is empty if the file ends with a hole.
  [[nodiscard]] std::optional<std::vector<ByteRange>> take() &&;

 private:
  void join_near();

  const std::uint64_t file_bytes_;
  const std::size_t regions_max_;
  std::uint64_t hole_bytes_min_ = 1;
  std::vector<ByteRange> regions_;
};

}  // namespace varve::transfer
