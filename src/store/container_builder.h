// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "format/birth_mark.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {

/// A frame to pack into a container.
struct PackedFrame {
  std::span<const format::ChunkEntry> chunks;  ///< Ids, fingerprints and raw bytes.
  std::span<const std::byte> raw;
  const format::EncodedFrame* encoded = nullptr;
  std::uint8_t prefix = 0;  ///< As FrameEntry::prefix.
  /// True to store the frame as one frame of the container. Otherwise an incompressible frame of a
  /// sealed container is divided, because a reader of a part of a frame decrypts the whole frame,
  /// at a higher cost than the checksum of a plain frame (docs/decisions/103).
  bool is_whole = false;
};

/// Limits of one container.
struct ContainerLimits {
  std::size_t raw_bytes_max = 0;
  std::uint64_t bytes_max = 0;  ///< Length of the container.
};

/// Packs frames into the bytes of one container after another. Takes the memory of a container with
/// the first frame. Not thread-safe.
class ContainerBuilder {
 public:
  /// Lifetime: `codec` and `marks` outlive the builder. `marks`: the existing marks of the births
  /// of all chunks.
  ContainerBuilder(StoreId store, format::ContainerForm form, const format::FrameCodec& codec,
                   const format::BirthMarks& marks);

  [[nodiscard]] bool is_empty() const { return header_.frames.empty(); }
  /// Returns whether the container has room for all the frames. An empty container has room for a
  /// single frame.
  [[nodiscard]] bool fits(std::span<const PackedFrame> frames, const ContainerLimits& limits) const;
  /// Adds a frame. The container has room for it.
  void pack(const PackedFrame& frame);
  /// Makes the container's bytes final, unless they are: no frame is sealed twice. `take_number`
  /// returns the container's number. Errors: the errors of `take_number`, and as
  /// FrameCodec::finish_container().
  template <typename TakeNumber>
  [[nodiscard]] Result<void> finish(const TakeNumber& take_number) {
    if (is_final_) return {};
    VARVE_TRY_ASSIGN(header_.number, take_number());
    return finish();
  }
  /// Return the parts of the final container.
  [[nodiscard]] const format::ContainerHeader& header() const { return header_; }
  [[nodiscard]] std::span<const std::byte> header_bytes() const {
    return buffers_->header.span().first(header_.header_bytes);
  }
  [[nodiscard]] std::span<const std::byte> data_bytes() const {
    return buffers_->data.span().first(header_.stored_bytes() - header_.header_bytes);
  }
  /// Begins the next container.
  void clear();
  /// Gives back the memory. The container is empty.
  void release();

 private:
  struct Buffers {
    Buffers();
    base::AlignedBuffer data;
    base::AlignedBuffer header;
  };

  /// Calls handle(chunks, stored) for each frame in the container made from `frame`.
  template <typename Handle>
  void for_each_stored(const PackedFrame& frame, const Handle& handle) const;
  [[nodiscard]] Result<void> finish();

  const format::FrameCodec& codec_;
  const format::BirthMarks& marks_;
  const format::ContainerForm form_;
  format::ContainerHeader header_;
  bool is_final_ = false;  // The container has a number, and the frames are sealed.
  std::size_t id_runs_ = 0;
  std::set<VersionNumber> births_;
  std::size_t data_used_ = 0;
  std::size_t raw_bytes_ = 0;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace varve::store
