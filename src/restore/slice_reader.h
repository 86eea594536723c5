// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/container.h"
#include "layout/layout.h"
#include "varve/result.h"

namespace varve::restore {

/// Most stored bytes that one request fetches: the unit in which restoring reads.
inline constexpr std::size_t kSliceBytesMax = 512U << 10;
/// Needed frames this close to each other are fetched together: reading through a gap of
/// this length costs less than a second request, on an SSD as on a disk.
inline constexpr std::size_t kSliceGapBytesMax = 64U << 10;

/// Stored bytes of the frames `first` to `last` (inclusive) of a container.
struct Slice {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

[[nodiscard]] inline std::uint32_t frame_end(const format::FrameEntry& frame) {
  return frame.offset + frame.stored_bytes;
}
[[nodiscard]] inline std::size_t slice_bytes(const format::ContainerHead& head, Slice slice) {
  return frame_end(head.frames[slice.last]) - head.frames[slice.first].offset;
}

/// Reads slices and decodes their frames, and counts what it reads. Thread-safe.
class SliceReader {
 public:
  /// Fills `out`, whose size is slice_bytes().
  [[nodiscard]] Result<void> read(layout::ChunkSource& source, const format::ContainerHead& head,
                                  Slice slice, std::span<std::byte> out);

  [[nodiscard]] std::uint64_t requests() const { return requests_.load(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(); }

 private:
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
};

/// Verifies and decodes one frame out of the bytes of a slice. Errors name the container
/// and the frame.
[[nodiscard]] Result<void> decode_slice_frame(const format::ContainerHead& head, Slice slice,
                                              std::uint32_t frame,
                                              std::span<const std::byte> stored,
                                              std::span<std::byte> out);

}  // namespace varve::restore
