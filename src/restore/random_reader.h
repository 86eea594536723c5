// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "restore/buffer_pool.h"
#include "restore/frame_cache.h"
#include "restore/run_locator.h"
#include "restore/slice_reader.h"
#include "varve/result.h"

namespace varve::restore {

/// A decoded frame and its part of a file. Bytes `begin` to `end` of the file's data (without
/// holes) start at `frame_offset` in the frame.
struct FileFrame {
  std::weak_ptr<const Frame> frame;  ///< Weak, because many files may be open.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t frame_offset = 0;
};

/// A random read from one run of a file.
struct RandomRead {
  std::uint64_t version_key = 0;
  layout::ChunkSource* source = nullptr;
  RunLocator* locator = nullptr;
  const format::RecipeRun* run = nullptr;
  std::size_t run_number = 0;
  std::uint64_t run_offset = 0;
  std::uint64_t data_offset = 0;  ///< Offset of the same byte in the file's data.
  bool is_jump = false;           ///< The reader does not go through the file in order.
};

/// Serves random access: reads only the frames with requested bytes. If most bytes of the frames
/// are requested, bypasses the page cache, because copying the bytes there would cost as much as
/// reading from a fast disk. Thread-safe.
class RandomReader {
 public:
  RandomReader(SliceReader* reader, BufferPool* slices, BufferPool* frames,
               const ReadMetrics& metrics)
      : reader_(reader), slices_(slices), frame_buffers_(frames), metrics_(metrics) {}

  /// The requested bytes of one frame.
  struct Piece {
    std::uint32_t frame = 0;
    std::size_t frame_offset = 0;
    std::size_t part_begin = 0;  ///< Begin of the part's bytes in the frame.
    std::size_t part_end = 0;
    std::span<std::byte> out;
    std::uint64_t data_offset = 0;
  };
  /// The part of a read within one container.
  struct Part {
    RandomRead what;
    std::shared_ptr<const format::ContainerHeader> header;
    std::vector<Piece> pieces;
  };

  /// Splits a read of `out.size()` bytes into parts by container, and appends the parts to `parts`.
  /// The run must have at least `out.size()` bytes. Reads headers only.
  [[nodiscard]] Result<void> plan(RandomRead what, std::span<std::byte> out,
                                  std::vector<Part>& parts);
  /// Reads planned parts. Announces all but the first part to the kernel before reading the first
  /// part, so that a read of several containers waits for the disk about once. Sets `last` to the
  /// last frame found in the cache or added to the cache.
  [[nodiscard]] Result<void> read(std::span<const Part> parts, FileFrame& last);

 private:
  [[nodiscard]] static Result<void> plan_part(const RunPart& found, std::span<std::byte> out,
                                              Part& part);
  [[nodiscard]] bool announce(const Part& part);
  [[nodiscard]] Result<SliceBytes> fetch(const Part& part, Slice slice, std::size_t wanted,
                                         bool is_announced, std::span<std::byte> room);
  [[nodiscard]] Result<void> read_part(const Part& part, bool is_announced, FileFrame& last);

  SliceReader* const reader_;
  BufferPool* const slices_;
  BufferPool* const frame_buffers_;
  const ReadMetrics& metrics_;
  FrameCache frames_;
};

}  // namespace varve::restore
