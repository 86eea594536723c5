// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/container.h"

namespace varve::restore {

/// Most stored bytes that one request of random access fetches.
inline constexpr std::size_t kSliceBytesMax = 512U << 10;

/// Slices of an engine from this length on are read past the page cache.
inline constexpr std::size_t kDirectSliceBytes = 32U << 10;

/// What a request costs on the repository's disk, in bytes that it could have read meanwhile.
struct ReadCosts {
  /// Needed frames this close to each other are fetched together: reading through the gap
  /// takes no longer than a second request.
  std::uint32_t gap_bytes_max = 64U << 10;
  /// Most stored bytes that one request fetches.
  std::uint32_t request_bytes_max = kSliceBytesMax;
  bool operator==(const ReadCosts&) const = default;
};

/// The costs on a disk that answers a small request after `request_seconds` and reads
/// `bytes_per_second` in one go. Clamped to what the read path can work with.
[[nodiscard]] ReadCosts costs_of_disk(double request_seconds, double bytes_per_second);

/// Stored bytes of the frames `first` to `last` (inclusive) of a container.
struct Slice {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

[[nodiscard]] inline std::uint32_t frame_end(const format::FrameEntry& frame) {
  return frame.offset + frame.stored_bytes;
}
[[nodiscard]] inline std::size_t slice_bytes(const format::ContainerHeader& header, Slice slice) {
  return frame_end(header.frames[slice.last]) - header.frames[slice.first].offset;
}

/// What the window says about a frame.
enum class FrameNeed : std::uint8_t {
  kNone,
  kLater,  ///< There is a place for it, so it comes along where that saves a request.
  kNow,
};

/// The requests that fetch every kNow frame, and the kLater frames that it pays to fetch with
/// them; ascending and disjoint. `needs` has one entry for each frame of the container.
[[nodiscard]] std::vector<Slice> plan_slices(const format::ContainerHeader& header,
                                             std::span<const FrameNeed> needs,
                                             const ReadCosts& costs);

}  // namespace varve::restore
