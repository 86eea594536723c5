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

/// A decoded frame and what of it belongs to a file: the bytes `begin` to `end` of the
/// file's data (without holes) start at `frame_offset`.
struct FileFrame {
  std::weak_ptr<const Frame> frame;  ///< Weak: many files may be open.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t frame_offset = 0;
};

/// What is read of a file by random access.
struct RandomRead {
  std::uint64_t version_key = 0;
  layout::ChunkSource* source = nullptr;
  RunLocator* locator = nullptr;
  const format::RecipeRun* run = nullptr;
  std::size_t run_number = 0;
  std::uint64_t run_offset = 0;
  std::uint64_t data_offset = 0;  ///< Of the same byte, in the file's data.
};

/// Reads the frames that cover what is asked for, and no others; where most of them is asked for,
/// past the page cache: filling it costs as much as a fast disk, and whoever asked keeps the bytes.
/// Thread-safe.
class RandomReader {
 public:
  RandomReader(SliceReader* reader, BufferPool* slices, BufferPool* frames)
      : reader_(reader), slices_(slices), frame_buffers_(frames) {}

  /// The wanted bytes of one frame.
  struct Piece {
    std::uint32_t frame = 0;
    std::size_t frame_offset = 0;
    std::size_t part_begin = 0;  ///< The part's bytes in the frame.
    std::size_t part_end = 0;
    std::span<std::byte> out;
    std::uint64_t data_offset = 0;
  };
  /// What of a read stands in one container.
  struct Part {
    RandomRead what;
    std::shared_ptr<const format::ContainerHeader> header;
    std::vector<Piece> pieces;
  };

  /// Adds what it takes to fill `out` from the run, which must hold so much. Waits for headers
  /// only.
  [[nodiscard]] Result<void> plan(RandomRead what, std::span<std::byte> out,
                                  std::vector<Part>& parts);
  /// Reads what was planned. The kernel is told of all containers but the first before that is
  /// read: so a read of several waits for the disk about once. Sets `last` to the last frame that
  /// was decoded or found, if any part of it remains in memory.
  [[nodiscard]] Result<void> read(std::span<const Part> parts, FileFrame& last);

 private:
  [[nodiscard]] static Result<void> plan_part(const RunPart& found, std::span<std::byte> out,
                                              Part& part);
  [[nodiscard]] bool announce(const Part& part);
  [[nodiscard]] Result<std::span<const std::byte>> fetch(const Part& part, Slice slice,
                                                         std::size_t wanted, bool is_announced,
                                                         std::span<std::byte> room);
  [[nodiscard]] Result<void> read_part(const Part& part, bool is_announced, FileFrame& last);

  SliceReader* const reader_;
  BufferPool* const slices_;
  BufferPool* const frame_buffers_;
  FrameCache frames_;
};

}  // namespace varve::restore
