// SPDX-License-Identifier: Apache-2.0
// The frames of a ContainerWriter whose containers are not written yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "format/container.h"
#include "format/frame_codec.h"
#include "varve/types.h"

namespace varve::store {

struct PackedFrame;

/// A compressed frame of a group.
struct GroupFrame {
  /// Ids, fingerprints and raw bytes of the chunks, in the order of `raw`.
  std::vector<format::ChunkEntry> chunks;
  std::vector<std::byte> raw;    ///< At most kFrameRawBytesMax.
  format::EncodedFrame encoded;  ///< Made from `raw` with the raw bytes of the prefix, if any.
  std::uint8_t prefix = 0;       ///< As FrameEntry::prefix; the prefix is in the group.
};

/// A frame from its first chunk until the frame's container is written.
struct UnwrittenFrame {
  std::vector<format::ChunkEntry> chunks;
  std::vector<std::byte> raw;          ///< Empty once released.
  std::vector<std::uint32_t> offsets;  ///< Place of each chunk in `raw`; empty in a group.
  format::EncodedFrame encoded;
  std::uint8_t prefix = 0;    ///< As FrameEntry::prefix.
  std::size_t group = 1;      ///< Frames of the group that begins here; 0 inside of a group.
  bool in_group = false;      ///< True for a frame of append_group().
  bool encoded_done = false;  ///< True if `encoded` is final.
};
using UnwrittenFramePtr = std::shared_ptr<UnwrittenFrame>;

/// The frames between ContainerWriter::append() and the disk, in the order of appending. Not
/// thread-safe.
///
/// ```
/// append() ─▶ open frame ─ close() ─▶ closed frames ─ pack() ─▶ packed frames ─ drop_packed() ─▶
/// ```
///
/// Invariants: the packed frames are at the front of the queue, and are those of the container
/// being built. waiting_bytes() is the sum of the raw bytes of all frames but the open frame.
class UnwrittenFrames {
 public:
  /// `frame_bytes`: raw length beyond which no chunk is added to a frame.
  explicit UnwrittenFrames(std::size_t frame_bytes) : frame_bytes_(frame_bytes) {}

  [[nodiscard]] bool is_empty() const { return frames_.empty() && !open_; }
  [[nodiscard]] bool has_open() const { return open_ != nullptr; }
  /// Returns whether a chunk must go to another frame than the open frame.
  [[nodiscard]] bool is_open_too_full(std::size_t chunk_bytes) const;
  /// Appends a chunk to the open frame, and opens a frame if needed. Copies `raw`.
  void append(const format::ChunkEntry& chunk, std::span<const std::byte> raw);
  /// Closes the open frame, which must exist, and returns it.
  UnwrittenFramePtr close();
  /// Appends a group of closed and encoded frames. No frame is open.
  void append_group(std::vector<GroupFrame> group);

  /// Returns a copy of the chunk's raw bytes; nullopt if no frame has the chunk. All ids ascend,
  /// and no raw bytes of frames in the queue were released.
  [[nodiscard]] std::optional<std::vector<std::byte>> find(ChunkId id) const;

  /// Returns the first frame that is not packed; null if there is no such frame.
  [[nodiscard]] UnwrittenFramePtr to_pack() const;
  /// Returns whether to_pack() is encoded.
  [[nodiscard]] bool is_ready() const;
  /// Returns to_pack() and the rest of its group. Lifetime: until the frames are dropped.
  [[nodiscard]] std::vector<PackedFrame> group_to_pack() const;
  /// Counts to_pack() among the packed frames.
  void pack() { ++packed_; }
  /// Gives the frame's raw bytes back before the container is written. A second call does nothing.
  void release_raw(UnwrittenFrame& frame);
  /// Removes the packed frames, whose container is written.
  void drop_packed();
  /// Gives back the memory kept for new frames.
  void release_spare() { spare_ = {}; }

  /// Returns the raw bytes in memory of the closed frames.
  [[nodiscard]] std::size_t waiting_bytes() const { return waiting_bytes_; }
  /// Returns the number of frames closed so far.
  [[nodiscard]] std::uint64_t closed() const { return written_ + frames_.size(); }
  /// Returns the number of frames written so far.
  [[nodiscard]] std::uint64_t written() const { return written_; }
  /// Returns the number of frames in the container being built.
  [[nodiscard]] std::size_t packed() const { return packed_; }
  /// Returns the number of closed frames that are not packed.
  [[nodiscard]] std::size_t unpacked() const { return frames_.size() - packed_; }
  [[nodiscard]] bool are_all_encoded() const;

 private:
  const std::size_t frame_bytes_;
  UnwrittenFramePtr open_;
  std::deque<UnwrittenFramePtr> frames_;  // Closed; the first packed_ ones are packed.
  std::vector<std::vector<std::byte>> spare_;
  std::size_t packed_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace varve::store
