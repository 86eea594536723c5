// SPDX-License-Identifier: Apache-2.0
// The way from raw bytes to a frame's stored bytes, and back.
//
// A frame is encoded in two steps, because its container has no number while its chunks are still
// being gathered: compress() on any thread, then finish_container() once all frames have places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/compression.h"
#include "format/container.h"
#include "format/container_keys.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// The place of a frame. A sealed container's frame opens only in its own place.
struct FramePlace {
  enum class Unit : std::uint8_t { kContainer, kManifest, kLabels };
  Unit unit = Unit::kContainer;
  std::uint32_t owner = 0;   ///< Value of the container's StoreId, or of the manifest's SeriesId.
  std::uint32_t number = 0;  ///< Value of the ContainerNumber, or of the manifest's VersionNumber.
  std::uint32_t frame = 0;   ///< Index of the frame in its unit.
  bool compact = false;      ///< Form of the frame's container.
  std::optional<ContainerSeal> seal{};  ///< Salt and length of a sealed container.
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

  /// Makes a new container final: seals the frames, whose stored bytes follow each other at the
  /// start of `data`, completes `header`, fills `data` with the padding up to the container's end,
  /// and returns the encoded header. `data` has room for kContainerBytesMax. The caller calls it
  /// once for a container, which has its store and number, and writes these bytes only.
  /// Errors: kIo without random bytes or memory; then nothing has changed.
  [[nodiscard]] virtual Result<std::string> finish_container(ContainerHeader& header,
                                                             std::span<std::byte> data) const;

  /// Returns the checksum of the stored bytes of a block of another unit than a container. The
  /// caller seals each block of a unit exactly once.
  [[nodiscard]] virtual std::uint64_t seal(const FramePlace& place,
                                           std::span<std::byte> stored) const = 0;

  /// Verifies a frame's stored bytes and fills `out` with its raw bytes. out.size() must be
  /// frame.raw_bytes.
  /// Errors: kCorrupt if the bytes are damaged; kIo without memory.
  [[nodiscard]] virtual Result<void> decode(const FramePlace& place, const FrameEntry& frame,
                                            std::span<const std::byte> stored,
                                            std::span<std::byte> out) const = 0;

  /// Returns the keys of the repository's containers, or null if they are plain.
  [[nodiscard]] virtual const ContainerKeys* keys() const { return nullptr; }

  /// Verifies the padding behind a container's data, up to the container's end.
  /// Errors: kCorrupt if a byte of it is damaged; kIo without memory.
  [[nodiscard]] virtual Result<void> verify_padding(const ContainerHeader& header,
                                                    std::span<const std::byte> padding) const;
  /// Returns the padding that the container has behind its data, to write damaged padding again.
  /// Errors: kIo without memory.
  [[nodiscard]] virtual Result<std::vector<std::byte>> padding_of(
      const ContainerHeader& header) const;
};

/// Returns the codec of a repository without a key: its frames do not depend on their places.
[[nodiscard]] std::unique_ptr<const FrameCodec> make_plain_frame_codec(
    const Compression& compression);

/// Returns the codec of an encrypted repository. It seals frames of containers only: files that
/// have blocks of the other units are sealed as files.
[[nodiscard]] std::unique_ptr<const FrameCodec> make_sealed_frame_codec(
    const Compression& compression, std::unique_ptr<const ContainerKeys> keys);

}  // namespace varve::format
