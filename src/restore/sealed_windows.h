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
  /// Keeps the bytes alive. Null if the bytes are in the caller's memory.
  std::shared_ptr<const void> holder{};
  /// The unreadable parts of `bytes`.
  store::UnreadParts unread{};
};

/// Reads stored bytes of sealed containers in windows of one size.
///
/// A request for a slice would reveal the frame boundaries to the storage, and so the compression
/// of each piece of a file: an observer recognises a known file by the compression (decisions/086).
/// Requests for windows reveal only the parts of a container that were read. The last windows are
/// cached, so that the next slice does not read them again.
///
/// A request reads one window or several (decisions/079, 103):
/// - all windows of an aligned block, if the reader will need three quarters of the block;
/// - the windows that a reader needs after a jump, if the windows are consecutive;
/// - otherwise half as many as were read one after the other up to there.
///
/// So the requests follow only from the wanted windows and the order of the reads, and reveal
/// nothing else about the slices.
///
/// Thread-safe.
/// Lock order: the mutex of a block, then of the cache, then of the memory.
class SealedWindows {
 public:
  SealedWindows();

  static constexpr std::size_t kWindowBytes = 128U << 10;
  /// Maximum number of cached windows: the windows of a whole container.
  static constexpr std::size_t kWindows = format::kContainerBytesMax / kWindowBytes;
  /// The number of windows of a block, and the maximum for one request.
  static constexpr std::uint32_t kTogetherMax = 4;

  /// Windows of one container.
  using Set = std::bitset<kWindows>;

  /// The reader's needs in a container, beside the current slice.
  struct Plan {
    Set wanted{};                                ///< Windows that the reader's plan needs.
    std::uint32_t block_windows = kTogetherMax;  ///< Length of a block: a power of two.
    bool is_random = false;                      ///< Whether a random read wants only the slice.
  };

  /// Requests and bytes of a read.
  struct Cost {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
  };

  /// Adds the windows of a slice to `set`.
  static void add_windows(const format::ContainerHeader& header, Slice slice, Set& set);

  /// Returns the stored bytes of a slice: in cached memory if one request has read all of them,
  /// else a copy in `room` of slice_bytes(). `once`: the bytes will hardly be read again. Adds to
  /// `cost`. Unreadable bytes are reported as SliceBytes::unread instead of an error: windows are
  /// independent of frames, and a reader of a frame must not fail because of bytes beside the
  /// frame.
  /// Errors: the errors of ChunkSource::read_around().
  [[nodiscard]] Result<SliceBytes> read(layout::ChunkSource& source,
                                        const format::ContainerHeader& header, Slice slice,
                                        std::span<std::byte> room, bool once, const Plan& plan,
                                        Cost& cost);
  /// Returns whether a window of the container is cached.
  [[nodiscard]] bool has_part_of(const format::ContainerHeader& header) const;
  /// Drops the windows of a container after a damaged frame was found in them: the next read may
  /// find sound bytes.
  void forget(const format::ContainerHeader& header);

 private:
  using Salt = decltype(format::ContainerSeal::salt);
  struct Block;
  struct Memory;
  // Windows read by one request.
  struct Entry {
    Salt salt{};
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t run = 0;  // Windows read one after the other, up to the last window of the entry.
    std::shared_ptr<Block> block;
  };
  // The windows of a slice still to be read or copied.
  struct Wanted {
    Salt salt{};
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t windows = 0;  // All windows of the container.
  };
  [[nodiscard]] Entry find(const Wanted& wanted, const Plan& plan);
  [[nodiscard]] Entry request_for(const Wanted& wanted, const Plan& plan) const;
  [[nodiscard]] Entry alone(const Salt& salt, std::uint32_t index);
  void add(Entry entry, std::vector<std::shared_ptr<Block>>& dropped);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // Most recently used last.
  const std::shared_ptr<Memory> memory_;
};

}  // namespace varve::restore
