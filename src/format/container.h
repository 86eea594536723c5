// SPDX-License-Identifier: Apache-2.0
// The container: Varve's unit of storage, at most 4 MiB, self-describing. docs/FORMAT.md §3.
//
//   header   = fixed header (128 bytes) | frame directory | chunk table, zero-padded to 4096
//   data   = the frames' stored bytes, one after the other, zero-padded to 4096
//
// A compact container has no padding: volumes hold many small ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

inline constexpr std::size_t kContainerBytesMax = 4U << 20;
inline constexpr std::size_t kContainerAlignment = 4096;
inline constexpr std::size_t kContainerFixedHeaderBytes = 128;
inline constexpr std::size_t kFrameRawBytesMax = 128U << 10;
inline constexpr std::uint32_t kContainerMagic = 0x56525643;  // "CVRV" in file order

/// Bytes with the padding that follows them.
[[nodiscard]] constexpr std::uint64_t padded_bytes(std::uint64_t bytes, bool compact) {
  return compact ? bytes : (bytes + kContainerAlignment - 1) & ~(kContainerAlignment - 1);
}

/// A run of consecutive chunks of one container, compressed together.
struct FrameEntry {
  std::uint32_t first_chunk = 0;  ///< Index into the chunk table.
  std::uint32_t chunk_count = 0;
  std::uint32_t offset = 0;  ///< From the start of the container's data. Derived.
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  Codec codec = Codec::kNone;
  std::uint64_t checksum = 0;  ///< XXH3-64 of the stored bytes.
  bool operator==(const FrameEntry&) const = default;
};

/// One chunk. Its frame and its offset in the frame's raw bytes follow from the order.
struct ChunkEntry {
  ChunkId id;
  Fingerprint fingerprint{};
  std::uint32_t raw_bytes = 0;
  std::uint32_t frame = 0;         ///< Derived.
  std::uint32_t frame_offset = 0;  ///< Raw offset inside the frame. Derived.
  bool operator==(const ChunkEntry&) const = default;
};

/// Everything about a container but its data.
struct ContainerHeader {
  StoreId store{};
  ContainerNumber number{};  ///< Unique inside the series.
  bool compact = false;      ///< Without padding, so at any offset.
  std::uint32_t header_bytes =
      0;  ///< Where the data starts; multiple of 4096 unless compact. Derived.
  std::uint32_t data_bytes = 0;  ///< Sum of the frames' stored bytes, without padding. Derived.
  std::uint64_t raw_bytes = 0;   ///< Derived.
  std::vector<FrameEntry> frames;
  std::vector<ChunkEntry> chunks;

  /// Bytes on disk with both paddings.
  [[nodiscard]] std::uint32_t stored_bytes() const {
    return header_bytes + static_cast<std::uint32_t>(padded_bytes(data_bytes, compact));
  }
  bool operator==(const ContainerHeader&) const = default;
};

/// Bytes that a header of so many frames, chunks and id runs takes, padding included.
[[nodiscard]] std::size_t container_header_bytes(std::size_t frames, std::size_t chunks,
                                                 std::size_t id_runs, bool compact = false);

/// Encodes a header; the derived members are computed, and written back into `header`.
/// The result's size is header.header_bytes.
[[nodiscard]] std::string encode_container_header(ContainerHeader& header);

/// Bytes that the header at `start` takes, from its first kContainerFixedHeaderBytes bytes.
/// kCorrupt if the fixed header's checksum, magic or bounds are wrong; kUnsupported for a newer
/// format or unknown feature flags.
[[nodiscard]] Result<std::uint32_t> container_header_length(std::span<const std::byte> start);

/// Returns the bytes of the whole container, with its padding, also if the header behind the fixed
/// one is damaged. Errors: as container_header_length().
[[nodiscard]] Result<std::uint32_t> container_length(std::span<const std::byte> start);

/// Corrects the fixed header at `start` if a single byte of it is wrong: tries all values of all
/// its bytes, in about a millisecond. Returns whether the fixed header is valid afterwards; changes
/// nothing otherwise.
[[nodiscard]] bool correct_fixed_header(std::span<std::byte> start);

/// Decodes a whole header; verifies every checksum and bound. Never allocates more than the
/// input's size allows.
[[nodiscard]] Result<ContainerHeader> decode_container_header(std::span<const std::byte> header);

}  // namespace varve::format
