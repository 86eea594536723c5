// SPDX-License-Identifier: Apache-2.0
// Plans the frames of a volume in which similar chunks are compressed together.
// docs/FORMAT.md §4.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "layout/chunk_sketch.h"
#include "layout/planned_frame.h"

namespace varve::layout {

/// A chunk to place, with the sketch of its bytes.
struct SketchedChunk {
  ChunkId id;
  std::uint32_t raw_bytes = 0;
  ChunkSketch sketch{};
};

/// The order of chunks in a volume, and their frames. A group of frames belongs into one container,
/// and no prefix is outside of the group.
struct DeltaPlan {
  std::vector<base::IdRun> order;    ///< Each chunk once.
  std::vector<PlannedFrame> frames;  ///< For the chunks of `order`, one after the other.
};

/// Maximum of raw bytes and of chunks in a group: a container has room for a group, however little
/// the bytes compress.
inline constexpr std::uint64_t kGroupRawBytesMax = 2U << 20;
inline constexpr std::uint32_t kGroupChunksMax = 8192;

/// Plans groups of frames for `chunks`. The ids of `chunks` ascend. The chunks of the first frame
/// of a group are unlike each other. The second frame has a chunk like each chunk of the first
/// frame, if there is one, and so on. The prefix of a frame is the previous frame, or the first
/// frame if a chain would become too long. So a reader of the chunks of one death decodes few
/// frames of a group.
///
/// The first chunk of a group has the lowest id of the group, and groups ascend by the first chunk.
/// So no chunk of a container has a lower birth than the container's first chunk.
[[nodiscard]] DeltaPlan plan_delta(std::span<const SketchedChunk> chunks);

}  // namespace varve::layout
