// SPDX-License-Identifier: Apache-2.0
// Converts raw bytes to a frame's stored bytes, and back.
//
// A frame is encoded in two steps, because the frame's container has no number until all chunks are
// gathered: compress() on any thread, then finish_container() once all frames have places.
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
  std::uint32_t frame = 0;   ///< Index of the frame in the unit.
  bool compact = false;      ///< Form of the frame's container.
  std::optional<ContainerSeal> seal{};  ///< Salt and length of a sealed container.
  bool operator==(const FramePlace&) const = default;
};

/// Returns the place of a container's frame. The header must have its store and number.
[[nodiscard]] FramePlace place_of_frame(const ContainerHeader& header, std::uint32_t frame);

/// A compressed frame without a place.
struct EncodedFrame {
  Codec codec = Codec::kNone;
  std::vector<std::byte> stored;  ///< Empty if codec is kNone: store the raw bytes.
};

/// Encodes and decodes the frames of one repository. Thread-safe and immutable.
class FrameCodec {
 public:
  virtual ~FrameCodec() = default;

  /// Returns the compression of the repository's chunks.
  [[nodiscard]] virtual Compression compression() const = 0;

  /// Compresses raw bytes, at most kFrameRawBytesMax, with the repository's compression. `prefix`:
  /// the raw bytes of the frame's prefix (FrameEntry::prefix); empty for a frame without a prefix.
  /// Returns kNone if the data shrinks by less than 1/32.
  [[nodiscard]] EncodedFrame compress(std::span<const std::byte> raw,
                                      std::span<const std::byte> prefix = {}) const {
    return compress_as(compression(), raw, prefix);
  }
  /// Compresses raw bytes with another compression.
  [[nodiscard]] virtual EncodedFrame compress_as(const Compression& compression,
                                                 std::span<const std::byte> raw,
                                                 std::span<const std::byte> prefix = {}) const = 0;

  /// Makes a new container final: seals the frames, whose stored bytes follow each other at the
  /// start of `data`, completes `header`, fills `data` with the padding up to the container's end,
  /// and returns the encoded header. `header` has its store and number; `data` has room for
  /// kContainerBytesMax. The caller calls finish_container() once per container, and writes only
  /// the resulting bytes.
  /// Errors: kIo without random bytes or memory; both arguments are then unchanged.
  [[nodiscard]] virtual Result<std::string> finish_container(ContainerHeader& header,
                                                             std::span<std::byte> data) const;

  /// Returns the checksum of the stored bytes of a block of another unit than a container. The
  /// caller seals each block of a unit exactly once.
  [[nodiscard]] virtual std::uint64_t seal(const FramePlace& place,
                                           std::span<std::byte> stored) const = 0;

  /// Verifies the stored bytes of a frame without a prefix and fills `out` with the raw bytes.
  /// out.size() must be frame.raw_bytes. decode_frame() decodes any frame of a container.
  /// Errors: kCorrupt if the bytes are damaged, or if the frame has a prefix; kIo without memory.
  [[nodiscard]] Result<void> decode(const FramePlace& place, const FrameEntry& frame,
                                    std::span<const std::byte> stored,
                                    std::span<std::byte> out) const {
    return decode_on(place, frame, {}, stored, out);
  }
  /// Verifies and decodes a frame as decode(). `prefix`: the raw bytes of the frame's prefix; empty
  /// for a frame without a prefix.
  [[nodiscard]] virtual Result<void> decode_on(const FramePlace& place, const FrameEntry& frame,
                                               std::span<const std::byte> prefix,
                                               std::span<const std::byte> stored,
                                               std::span<std::byte> out) const = 0;

  /// Returns the keys of the repository's containers, or null for a plain repository.
  [[nodiscard]] virtual const ContainerKeys* keys() const { return nullptr; }

  /// Verifies the padding behind a container's data, up to the container's end.
  /// Errors: kCorrupt if a byte of the padding is damaged; kIo without memory.
  [[nodiscard]] virtual Result<void> verify_padding(const ContainerHeader& header,
                                                    std::span<const std::byte> padding) const;
  /// Returns the correct padding behind the container's data, for rewriting damaged padding.
  /// Errors: kIo without memory.
  [[nodiscard]] virtual Result<std::vector<std::byte>> padding_of(
      const ContainerHeader& header) const;
};

/// Verifies and decodes a frame of a container, and first the frame's prefixes. `stored` begins
/// with the container's data at extent_begin(), and has at least extent_bytes() of the frame.
/// out.size() must be the frame's raw_bytes. Thread-safe; each thread keeps memory for two frames.
/// Errors: as FrameCodec::decode_on(), for the frame or a prefix.
[[nodiscard]] Result<void> decode_frame(const FrameCodec& codec, const ContainerHeader& header,
                                        std::uint32_t frame, std::span<const std::byte> stored,
                                        std::span<std::byte> out);

/// Returns the codec of a repository without a key: the stored bytes do not depend on the place.
[[nodiscard]] std::unique_ptr<const FrameCodec> make_plain_frame_codec(
    const Compression& compression);

/// Returns the codec of an encrypted repository. Seals frames of containers only: files with blocks
/// of the other units are sealed as files.
[[nodiscard]] std::unique_ptr<const FrameCodec> make_sealed_frame_codec(
    const Compression& compression, std::unique_ptr<const ContainerKeys> keys);

}  // namespace varve::format
