// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/container.h"

namespace varve::restore {

/// Maximum of stored bytes for a request of random access.
inline constexpr std::size_t kSliceBytesMax = 512U << 10;

/// Maximum of stored bytes for a request to a local disk, made for the next areas: a container's
/// data.
inline constexpr std::size_t kJoinedBytesMax = 4U << 20;
/// A distant container is requested as a whole if at least 1 / kWholeContainerShare of the chunks
/// is wanted. A single request then replaces the requests for the header and for several slices.
inline constexpr std::uint64_t kWholeContainerShare = 2;

/// Length from which engines read slices past the page cache.
inline constexpr std::size_t kDirectSliceBytes = 32U << 10;

/// The cost of a request to the repository's disk, expressed as the number of bytes that the disk
/// could read in the same time.
struct ReadCosts {
  /// Largest gap between needed frames that a request reads through. A second request would take
  /// longer.
  std::uint32_t gap_bytes_max = 64U << 10;
  /// Maximum of stored bytes for a request.
  std::uint32_t request_bytes_max = kSliceBytesMax;
  bool operator==(const ReadCosts&) const = default;
};

/// Returns the costs for a disk that answers a small request after `request_seconds` and reads
/// `bytes_per_second` sequentially. Clamps the costs to the limits of the read path.
[[nodiscard]] ReadCosts costs_of_disk(double request_seconds, double bytes_per_second);

/// The stored bytes of the frames `first` to `last` (inclusive) of a container, and of the frames'
/// prefixes. One thread decodes a slice, and one request fetches one or more slices.
struct Slice {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

[[nodiscard]] inline std::uint32_t frame_end(const format::FrameEntry& frame) {
  return frame.offset + frame.stored_bytes;
}
/// Returns the end of a container's data for reading. In a sealed container, the padding belongs to
/// the data: a request without the padding would reveal the amount of padding.
[[nodiscard]] inline std::uint32_t data_end(const format::ContainerHeader& header) {
  return header.seal ? header.seal->total_bytes - header.header_bytes : header.data_bytes;
}
/// Returns the offset of the first byte to read for a slice: the slice's bytes include those of the
/// prefixes of its frames.
[[nodiscard]] std::uint32_t slice_begin(const format::ContainerHeader& header, Slice slice);
/// Returns the bytes to read for a slice.
[[nodiscard]] inline std::size_t slice_bytes(const format::ContainerHeader& header, Slice slice) {
  const bool ends_data = header.seal && slice.last + 1 == header.frames.size();
  return (ends_data ? data_end(header) : frame_end(header.frames[slice.last])) -
         slice_begin(header, slice);
}

/// The window's need for a frame.
enum class FrameNeed : std::uint8_t {
  kNone,
  kLater,  ///< Needed later, with room in memory. Fetched now only if the fetch saves a request.
  kNow,
};

/// Returns the requests that fetch every kNow frame, and all kLater frames that are cheap to fetch
/// in the same requests. The slices are ascending and disjoint. `needs` has one entry for each
/// frame of the container.
[[nodiscard]] std::vector<Slice> plan_slices(const format::ContainerHeader& header,
                                             std::span<const FrameNeed> needs,
                                             const ReadCosts& costs);

/// Splits each slice into slices of at most `bytes_max` that together have all frames with a need.
/// A longer frame becomes a separate slice.
[[nodiscard]] std::vector<Slice> split_slices(const format::ContainerHeader& header,
                                              std::span<const FrameNeed> needs,
                                              std::span<const Slice> slices, std::size_t bytes_max);

}  // namespace varve::restore
