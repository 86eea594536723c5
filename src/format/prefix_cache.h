// SPDX-License-Identifier: Apache-2.0
// Keeps decoded frames that other frames need as prefixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "varve/result.h"

namespace varve::format {

/// Keeps the raw bytes of the prefixes used last, so that a reader of successive frames decodes
/// each frame of a chain once. Keeps verified bytes only. Thread-safe; serves one repository.
class PrefixCache {
 public:
  using Raw = std::shared_ptr<const std::vector<std::byte>>;

  /// Keeps at most `frames_max` frames of kFrameRawBytesMax each.
  explicit PrefixCache(std::size_t frames_max) : frames_max_(frames_max) {}

  /// Returns the raw bytes of the container's frame, or null.
  [[nodiscard]] Raw find(const ContainerHeader& header, std::uint32_t frame);
  /// Keeps the raw bytes of the container's frame in place of those used longest ago.
  void insert(const ContainerHeader& header, std::uint32_t frame, Raw raw);

 private:
  // The checksum, or the tag, distinguishes frames with the same place at different times.
  struct Key {
    StoreId store{};
    ContainerNumber container{};
    std::uint32_t frame = 0;
    std::uint32_t raw_bytes = 0;
    std::uint64_t checksum = 0;
    std::uint64_t tag_end = 0;
    bool operator==(const Key&) const = default;
  };
  [[nodiscard]] static Key key_of(const ContainerHeader& header, std::uint32_t frame);

  const std::size_t frames_max_;
  std::mutex mutex_;                        // Innermost; never held while decoding.
  std::list<std::pair<Key, Raw>> entries_;  // Used last first.
};

/// Verifies and decodes a frame as decode_frame(). Takes the frame and the frame's prefixes from
/// `cache`, where possible. Keeps the decoded prefixes there, and the frame itself if a later frame
/// of the container needs the frame. Returns the number of decoded raw bytes, prefixes included.
/// Errors: as decode_frame().
[[nodiscard]] Result<std::uint64_t> decode_frame(const FrameCodec& codec,
                                                 const ContainerHeader& header, std::uint32_t frame,
                                                 std::span<const std::byte> stored,
                                                 std::span<std::byte> out, PrefixCache& cache);

}  // namespace varve::format
