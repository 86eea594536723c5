// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "layout/layout_metrics.h"
#include "layout/planned_frame.h"
#include "store/container_writer.h"
#include "store/unwritten_frames.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Compresses the frames of a plan with the prefixes, and passes each group to a writer. A frame
/// keeps the prefix if the stored bytes become a quarter smaller at least, and if a chain of frames
/// takes at most twice the stored bytes of the first frame. Holds the raw bytes of one group. Not
/// thread-safe.
/// Lifetime: `writer`, `codec`, `compressors`, the frames and `metrics` outlive the packer. Counts
/// nothing if `metrics` is null.
class GroupPacker {
 public:
  GroupPacker(store::ContainerWriter& writer, const format::FrameCodec& codec,
              base::ThreadPool& compressors, std::span<const PlannedFrame> frames,
              const LayoutMetrics* metrics = nullptr);

  /// Adds the next chunk of the plan; copies `raw`.
  [[nodiscard]] Result<void> add(ChunkId id, const Fingerprint& fingerprint,
                                 std::span<const std::byte> raw);
  /// Leaves out the next chunk of the plan, which cannot be read.
  [[nodiscard]] Result<void> skip();

 private:
  struct Frame {
    store::GroupFrame made;
    std::optional<std::size_t> prefix{};  // Index of the prefix in group_.
    format::EncodedFrame plain{};         // Compressed without a prefix.
    bool has_plain = false;               // Whether `plain` is made.
  };

  void begin_frame();
  [[nodiscard]] Result<void> end_chunk();
  [[nodiscard]] Result<void> write_group();
  void choose_prefixes();
  void count_prefix(std::size_t number, std::size_t root) const;
  void restore_order();
  [[nodiscard]] static Frame sorted(Frame frame);
  /// Compresses the chosen frames on the threads of `compressors_`.
  void compress_each(const std::function<bool(std::size_t)>& chosen,
                     void (GroupPacker::*compress_one)(std::size_t));
  void compress(std::size_t number);
  void compress_plain(std::size_t number);
  [[nodiscard]] bool is_plain_needed(std::size_t number) const;
  [[nodiscard]] double plain_estimate(std::size_t number, const format::EncodedFrame& first,
                                      std::size_t first_raw_bytes) const;

  store::ContainerWriter& writer_;
  const format::FrameCodec& codec_;
  base::ThreadPool& compressors_;
  const LayoutMetrics* const metrics_;
  std::span<const PlannedFrame> frames_;  // The incomplete frames.
  std::uint32_t chunks_ = 0;              // Chunks of the first incomplete frame so far.
  std::vector<Frame> group_;
  std::optional<ChunkId> last_first_;  // First chunk of the group written last.
};

}  // namespace varve::layout
