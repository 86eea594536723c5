// SPDX-License-Identifier: Apache-2.0
// The container: Varve's unit of storage, at most 4 MiB, self-describing. docs/FORMAT.md §3.
//
//   header = fixed header (128 bytes) | frame directory | id runs | chunk table | marks of the
//            births, zero-padded to 4096
//   data   = the frames' stored bytes, one after the other, zero-padded to 4096
//
// A compact container has no padding: volumes hold many small containers. An encrypted repository
// has sealed containers, with the same parts: the counts of the fixed header and all bytes behind
// the fixed header are encrypted, and the padding hides the length. docs/FORMAT.md §14.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "format/birth_mark.h"
#include "format/container_keys.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

inline constexpr std::size_t kContainerBytesMax = 4U << 20;
inline constexpr std::size_t kContainerAlignment = 4096;
inline constexpr std::size_t kContainerFixedHeaderBytes = 128;
inline constexpr std::size_t kFrameRawBytesMax = 128U << 10;
/// Maximum number of frames that a reader decodes before a frame: the prefix, the prefix's prefix,
/// and so on.
inline constexpr std::size_t kFramePrefixesMax = 3;
/// Maximum of stored bytes from the start of the first prefix to the end of the frame.
inline constexpr std::size_t kFrameExtentBytesMax = 512U << 10;
inline constexpr std::uint32_t kContainerMagic = 0x56525643;  // "CVRV" in file order

/// Returns the size of `bytes` with padding.
[[nodiscard]] constexpr std::uint64_t padded_bytes(std::uint64_t bytes, bool compact) {
  return compact ? bytes : (bytes + kContainerAlignment - 1) & ~(kContainerAlignment - 1);
}

/// The form of a container, as stated by its feature flags.
struct ContainerForm {
  bool compact = false;  ///< Without padding to 4096, so at any offset.
  bool sealed = false;   ///< Encrypted.
  bool operator==(const ContainerForm&) const = default;
};

/// Returns the feature flags of a container's fixed header. `marked`: the container has marks of
/// births. `delta`: a frame has a prefix.
[[nodiscard]] std::uint32_t container_features(ContainerForm form, bool marked, bool delta = false);

/// Returns the bytes on disk of a new container with `header_bytes` of header and `data_bytes` of
/// data. Padmé (Nikitin et al., PETS 2019) pads a sealed container by at most 12 %, and by 3 % from
/// 64 KiB on.
[[nodiscard]] std::uint64_t container_bytes(std::uint64_t header_bytes, std::uint64_t data_bytes,
                                            ContainerForm form);

/// A run of consecutive chunks of one container, compressed together.
struct FrameEntry {
  std::uint32_t first_chunk = 0;  ///< Index into the chunk table.
  std::uint32_t chunk_count = 0;
  std::uint32_t offset = 0;  ///< From the start of the container's data. Derived.
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  Codec codec = Codec::kNone;
  /// Distance to the prefix: a frame before this frame, whose raw bytes the compressor had as a
  /// prefix. A delta frame has a prefix, and compressed bytes; 0 for any other frame.
  std::uint8_t prefix = 0;
  /// Stored bytes directly before the frame that decoding needs: from the start of the first prefix
  /// on. Derived.
  std::uint32_t lead_bytes = 0;
  /// XXH3-64 of the stored bytes. In a sealed container, the first half of the frame's tag.
  std::uint64_t checksum = 0;
  std::uint64_t tag_end = 0;  ///< Second half of the tag; 0 in a plain container.

  /// Returns the tag of a frame of a sealed container.
  [[nodiscard]] crypto::Tag tag() const;
  void set_tag(const crypto::Tag& tag);
  bool operator==(const FrameEntry&) const = default;
};

/// Returns the offset of the first stored byte that decoding the frame needs.
[[nodiscard]] constexpr std::uint32_t extent_begin(const FrameEntry& frame) {
  return frame.offset - frame.lead_bytes;
}
/// Returns the number of stored bytes that decoding the frame needs, up to the frame's end.
[[nodiscard]] constexpr std::uint32_t extent_bytes(const FrameEntry& frame) {
  return frame.lead_bytes + frame.stored_bytes;
}
/// Returns whether a frame has a prefix.
[[nodiscard]] bool has_prefixes(const std::vector<FrameEntry>& frames);

/// A chunk. The order of the chunks determines its frame and its offset in the frame's raw bytes.
struct ChunkEntry {
  ChunkId id;
  Fingerprint fingerprint{};
  std::uint32_t raw_bytes = 0;
  std::uint32_t frame = 0;         ///< Derived.
  std::uint32_t frame_offset = 0;  ///< Raw offset inside the frame. Derived.
  bool operator==(const ChunkEntry&) const = default;
};

/// All fields of a container except the data.
struct ContainerHeader {
  StoreId store{};
  ContainerNumber number{};  ///< Unique inside the series.
  bool compact = false;      ///< Without padding, so at any offset.
  std::uint32_t header_bytes =
      0;                         ///< Offset of the data; multiple of 4096 unless compact. Derived.
  std::uint32_t data_bytes = 0;  ///< Sum of the frames' stored bytes, without padding. Derived.
  std::uint64_t raw_bytes = 0;   ///< Derived.
  std::vector<FrameEntry> frames;
  std::vector<ChunkEntry> chunks;
  /// The mark of each birth of the chunks; kNoMark for a birth without a mark. Empty if all births
  /// lack marks.
  BirthMarks marks{};
  std::optional<ContainerSeal> seal{};  ///< Salt and length of a sealed container.
  /// Checksum of the fixed header of a plain container; set by encoding and decoding. Derived.
  std::optional<std::uint64_t> checksum{};

  [[nodiscard]] ContainerForm form() const { return {compact, seal.has_value()}; }
  /// Returns the bytes on disk, padding included.
  [[nodiscard]] std::uint32_t stored_bytes() const {
    if (seal) return seal->total_bytes;
    return header_bytes + static_cast<std::uint32_t>(padded_bytes(data_bytes, compact));
  }
  bool operator==(const ContainerHeader&) const = default;
};

/// Returns the bytes of a header with the given numbers of frames, chunks, id runs and marks,
/// padding included.
[[nodiscard]] std::size_t container_header_bytes(std::size_t frames, std::size_t chunks,
                                                 std::size_t id_runs, ContainerForm form = {},
                                                 std::size_t marks = 0);

/// Computes the derived members of a header from its frames and chunks. For a sealed container,
/// also computes the total length, by container_bytes().
void complete_header(ContainerHeader& header);

/// Encodes the header of a plain container; the derived members are computed, and written back into
/// `header`. The result's size is header.header_bytes.
[[nodiscard]] std::string encode_container_header(ContainerHeader& header);

/// Returns a text that determines the header of an unsealed container.
[[nodiscard]] std::string unsealed_header_text(const ContainerHeader& header);

/// Seals the zeros behind the data of a sealed container, in place. The result is the same each
/// time.
void seal_padding(const ContainerHeader& header, const ContainerKey& key,
                  std::span<std::byte> zeros);

/// Seals a whole container: the header, and the frames, whose stored bytes follow each other in
/// `data`. Fills `data` with the padding up to the container's end, and returns the encoded header.
/// complete_header() has completed `header`. `key` is the key of the header's salt, which is unique
/// to the container. The caller calls seal_container() once.
[[nodiscard]] std::string seal_container(ContainerHeader& header, const ContainerKey& key,
                                         std::span<std::byte> data);

/// Returns the bytes of the header at `start`, from the first kContainerFixedHeaderBytes bytes.
/// `keys` are the repository's keys, or null for a plain repository.
/// Errors: kCorrupt if the fixed header's checksum, magic or bounds are wrong, or if the container
/// is plain in an encrypted repository or sealed in a plain repository; kUnsupported for a newer
/// format or unknown feature flags.
[[nodiscard]] Result<std::uint32_t> container_header_length(std::span<const std::byte> start,
                                                            const ContainerKeys* keys = nullptr);

/// Returns the bytes of the whole container, with the padding, even if the header is damaged behind
/// the fixed header. Needs no keys. Errors: as container_header_length().
[[nodiscard]] Result<std::uint32_t> container_length(std::span<const std::byte> start);

/// Returns the checksum, stored in the fixed header, of the header's bytes behind the fixed header.
/// Errors: as container_header_length().
[[nodiscard]] Result<std::uint64_t> container_tables_checksum(std::span<const std::byte> start,
                                                              const ContainerKeys* keys);

/// Returns the checksum of all bytes behind the fixed header, padding included; nullopt if the
/// container is plain. Needs no keys. Errors: as container_header_length().
[[nodiscard]] Result<std::optional<std::uint64_t>> container_outer_checksum(
    std::span<const std::byte> start);

/// Corrects the fixed header at `start` if a single byte is wrong: tries all values of every byte,
/// in about a millisecond. Needs no keys. Returns whether the fixed header is valid afterwards;
/// changes nothing otherwise.
[[nodiscard]] bool correct_fixed_header(std::span<std::byte> start);

/// Decodes a whole header; verifies every checksum, tag and bound. Never allocates more than the
/// input's size allows. Errors: as container_header_length(); kIo without memory.
[[nodiscard]] Result<ContainerHeader> decode_container_header(std::span<const std::byte> header,
                                                              const ContainerKeys* keys = nullptr);

}  // namespace varve::format
