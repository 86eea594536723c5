// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "format/container.h"
#include "layout/layout.h"
#include "varve/result.h"

namespace varve::restore {

/// Reads stored bytes of sealed containers in windows of one size.
///
/// A request for a slice would show the storage where frames begin and end, and so how well each
/// piece of a file was compressed: a known file is recognised by that (decisions/86). Windows show
/// only which parts of a container were read. The last windows are kept, so that the next slice
/// does not read them again.
///
/// A request reads one window, or several if the windows before it were wanted, too: half as many
/// as were read one after the other up to there, and at most kTogetherMax. So the requests follow
/// from the windows that were wanted and their order, and tell nothing else about the slices
/// (decisions/79). Thread-safe. Lock order: a block's mutex is taken before the cache's.
class SealedWindows {
 public:
  static constexpr std::size_t kWindowBytes = 128U << 10;
  /// The number of windows that are kept: those of a whole container.
  static constexpr std::size_t kWindows = format::kContainerBytesMax / kWindowBytes;
  /// The most windows that one request reads.
  static constexpr std::uint32_t kTogetherMax = 4;

  /// Numbers of the requests and bytes that a read cost.
  struct Cost {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
  };

  /// Fills `out` with stored bytes from `offset` of the container's data. `once`: they will hardly
  /// be read again. Errors: those of ChunkSource::read_once().
  [[nodiscard]] Result<Cost> read(layout::ChunkSource& source,
                                  const format::ContainerHeader& header, std::uint32_t offset,
                                  std::span<std::byte> out, bool once);
  /// Returns whether a window of the container is kept.
  [[nodiscard]] bool has_part_of(const format::ContainerHeader& header) const;
  /// Drops the windows of a container, because a frame in them is damaged: the next read may find
  /// sound bytes.
  void forget(const format::ContainerHeader& header);

 private:
  using Salt = decltype(format::ContainerSeal::salt);
  struct Block;
  // Windows that one request reads.
  struct Entry {
    Salt salt{};
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t run = 0;  // Windows up to the last one that were read one after the other.
    std::shared_ptr<Block> block;
  };
  [[nodiscard]] Entry find(const Salt& salt, std::uint32_t index, std::uint32_t windows);
  [[nodiscard]] Entry alone(const Salt& salt, std::uint32_t index);
  void add(Entry entry, std::vector<std::shared_ptr<Block>>& dropped);
  void keep_memory(std::vector<std::shared_ptr<Block>> dropped);
  [[nodiscard]] base::AlignedBuffer memory_for(std::size_t bytes);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // The last used at the end.
  // Memory of blocks that ended, for the next ones: fresh memory costs a page fault for every 4
  // KiB.
  std::vector<base::AlignedBuffer> spares_;
};

}  // namespace varve::restore
