// SPDX-License-Identifier: Apache-2.0
// The way from raw bytes to a frame's stored bytes, and back.
//
// A frame is encoded in two steps, because its container has no number while its chunks are still
// being gathered: compress() on any thread, then seal() once the frame has its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/compression.h"
#include "format/container.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// The place of a frame. A codec with keys derives the frame's key and nonce from it, so a frame
/// opens only in its own place. A place can be written a second time: a crash gives unnamed
/// container numbers back, and a manifest can be written again. So such a codec needs a salt, too.
struct FramePlace {
  enum class Unit : std::uint8_t { kContainer, kManifest, kLabels };
  Unit unit = Unit::kContainer;
  std::uint32_t owner = 0;   ///< Value of the container's StoreId, or of the manifest's SeriesId.
  std::uint32_t number = 0;  ///< Value of the ContainerNumber, or of the manifest's VersionNumber.
  std::uint32_t frame = 0;   ///< Index of the frame in its unit.
  bool operator==(const FramePlace&) const = default;
};

/// Returns the place of a container's frame. The header must have its store and number.
[[nodiscard]] FramePlace place_of_frame(const ContainerHeader& header, std::uint32_t frame);

/// A compressed frame that has no place yet.
struct EncodedFrame {
  Codec codec = Codec::kNone;
  std::vector<std::byte> stored;  ///< Empty if codec is kNone: store the raw bytes.
};

/// Encodes and decodes the frames of one repository. Thread-safe and immutable.
class FrameCodec {
 public:
  virtual ~FrameCodec() = default;

  /// Returns the compression of chunks that the repository stores.
  [[nodiscard]] virtual Compression compression() const = 0;

  /// Compresses raw bytes, at most kFrameRawBytesMax, with the repository's compression. Returns
  /// kNone for data that does not shrink by 1/32.
  [[nodiscard]] EncodedFrame compress(std::span<const std::byte> raw) const {
    return compress_as(compression(), raw);
  }
  /// Compresses raw bytes with another compression.
  [[nodiscard]] virtual EncodedFrame compress_as(const Compression& compression,
                                                 std::span<const std::byte> raw) const = 0;

  /// Makes the stored bytes of a frame final, in place, and returns their checksum. The caller
  /// seals each frame of a unit exactly once.
  [[nodiscard]] virtual std::uint64_t seal(const FramePlace& place,
                                           std::span<std::byte> stored) const = 0;

  /// Verifies a frame's stored bytes and fills `out` with its raw bytes. out.size() must be
  /// frame.raw_bytes.
  /// Errors: kCorrupt if the bytes are damaged; kIo without memory.
  [[nodiscard]] virtual Result<void> decode(const FramePlace& place, const FrameEntry& frame,
                                            std::span<const std::byte> stored,
                                            std::span<std::byte> out) const = 0;
};

/// Returns the codec of a repository without a key: its frames do not depend on their places.
[[nodiscard]] std::unique_ptr<const FrameCodec> make_plain_frame_codec(
    const Compression& compression);

}  // namespace varve::format
