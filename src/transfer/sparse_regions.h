// SPDX-License-Identifier: Apache-2.0
// Which parts of a file with holes an archive holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transfer/file_sink.h"

namespace varve::transfer {

/// Collects the data of a file, rounds it out to the blocks of an archive, and joins what then
/// touches or overlaps. Memory is bounded: with more than `regions_max` regions the shortest
/// holes become data, which changes no byte of the file. Not synchronised.
class SparseRegions {
 public:
  static constexpr std::uint64_t kBlockBytes = 512;
  static constexpr std::size_t kRegionsMax = std::size_t{1} << 18;

  explicit SparseRegions(std::uint64_t file_bytes, std::size_t regions_max = kRegionsMax)
      : file_bytes_(file_bytes), regions_max_(regions_max) {}

  /// Adds a range of data, which must begin where the last one ended or after it.
  void add(ByteRange range);
  /// The regions, ascending. The last one ends with the file; it is empty if the file ends with
  /// a hole. nullopt if all of the file is data.
  [[nodiscard]] std::optional<std::vector<ByteRange>> take() &&;

 private:
  void join_near();

  const std::uint64_t file_bytes_;
  const std::size_t regions_max_;
  std::uint64_t hole_bytes_min_ = 1;
  std::vector<ByteRange> regions_;
};

}  // namespace varve::transfer
