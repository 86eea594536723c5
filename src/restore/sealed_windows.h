// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "format/container.h"
#include "layout/layout.h"
#include "restore/read_costs.h"
#include "varve/result.h"

namespace varve::restore {

/// The stored bytes of a slice.
struct SliceBytes {
  std::span<const std::byte> bytes;
  /// Keeps the bytes alive. Null if they are in the memory that the caller gave.
  std::shared_ptr<const void> holder{};
  /// The parts of `bytes` that could not be read.
  store::UnreadParts unread{};
};

/// Reads stored bytes of sealed containers in windows of one size.
///
/// A request for a slice would show the storage where frames begin and end, and so how well each
/// piece of a file was compressed: a known file is recognised by that (decisions/86). Windows show
/// only which parts of a container were read. The last windows are kept, so that the next slice
/// does not read them again.
///
/// A request reads one window or several (decisions/79, 103):
/// - all windows of an aligned block, if the reader will need three quarters of them;
/// - the windows that a reader needs after a jump, if they follow each other;
/// - otherwise half as many as were read one after the other up to there.
/// So the requests follow from the windows that were wanted, together and in order, and tell
/// nothing else about the slices. Thread-safe. Lock order: a block's mutex, then the cache's, then
/// that of the memory.
class SealedWindows {
 public:
  SealedWindows();

  static constexpr std::size_t kWindowBytes = 128U << 10;
  /// The number of windows that are kept: those of a whole container.
  static constexpr std::size_t kWindows = format::kContainerBytesMax / kWindowBytes;
  /// The number of windows of a block, and the most that one request reads.
  static constexpr std::uint32_t kTogetherMax = 4;

  /// Windows of one container.
  using Set = std::bitset<kWindows>;

  /// Tells what a reader wants of a container, beside the slice that it reads now.
  struct Plan {
    Set wanted{};                                ///< Windows that the reader's plan needs.
    std::uint32_t block_windows = kTogetherMax;  ///< Length of a block: a power of two.
    bool is_random = false;  ///< The slice is all that a random read wants of the container.
  };

  /// Numbers of the requests and bytes that a read cost.
  struct Cost {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
  };

  /// Adds the windows of a slice to `set`.
  static void add_windows(const format::ContainerHeader& header, Slice slice, Set& set);

  /// Returns the stored bytes of a slice: those of kept memory if one request has read them, else
  /// a copy in `room`, which has slice_bytes(). `once`: they will hardly be read again. Adds to
  /// `cost`. Unreadable bytes are parts of the slice that it returns: the request for a window
  /// shows no frames, so a reader of a frame does not fail by bytes beside the frame. Errors: those
  /// of ChunkSource::read_around().
  [[nodiscard]] Result<SliceBytes> read(layout::ChunkSource& source,
                                        const format::ContainerHeader& header, Slice slice,
                                        std::span<std::byte> room, bool once, const Plan& plan,
                                        Cost& cost);
  /// Returns whether a window of the container is kept.
  [[nodiscard]] bool has_part_of(const format::ContainerHeader& header) const;
  /// Drops the windows of a container, because a frame in them is damaged: the next read may find
  /// sound bytes.
  void forget(const format::ContainerHeader& header);

 private:
  using Salt = decltype(format::ContainerSeal::salt);
  struct Block;
  struct Memory;
  // Windows that one request reads.
  struct Entry {
    Salt salt{};
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t run = 0;  // Windows up to the last one that were read one after the other.
    std::shared_ptr<Block> block;
  };
  // The windows of a slice that are still to be read or copied.
  struct Wanted {
    Salt salt{};
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t windows = 0;  // Those of the container.
  };
  [[nodiscard]] Entry find(const Wanted& wanted, const Plan& plan);
  [[nodiscard]] Entry request_for(const Wanted& wanted, const Plan& plan) const;
  [[nodiscard]] Entry alone(const Salt& salt, std::uint32_t index);
  void add(Entry entry, std::vector<std::shared_ptr<Block>>& dropped);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // The last used at the end.
  const std::shared_ptr<Memory> memory_;
};

}  // namespace varve::restore
