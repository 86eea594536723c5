// SPDX-License-Identifier: Apache-2.0
// The file of a run: entries of the index, ascending by tag, in blocks. A lookup computes the
// block. Format: docs/FORMAT.md §8.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/tag_table.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::index {

inline constexpr std::size_t kBlockBytes = 4096;
inline constexpr std::size_t kBlockBodyBytes = kBlockBytes - sizeof(std::uint64_t);
inline constexpr std::size_t kBlockEntries = kBlockBodyBytes / sizeof(Entry);
static_assert(kBlockEntries * sizeof(Entry) == kBlockBodyBytes);
/// Entries of an average bucket. Few buckets exceed a block.
inline constexpr std::uint64_t kBucketEntries = 120;
/// Number of buckets sharing a filter block.
inline constexpr std::uint64_t kGroupBuckets = 28;
inline constexpr std::uint64_t kBucketsMax = std::uint64_t{1} << 38;

/// The places of a run's blocks. A bucket has one block; overflowing entries continue in the block
/// of the next bucket, and after the last bucket in the tail. A filter block follows each group.
struct RunShape {
  std::uint64_t buckets = 1;
  std::uint64_t tail = 0;

  [[nodiscard]] std::uint64_t bucket_of(const Tag& tag) const { return part_of(tag, buckets); }
  [[nodiscard]] static std::uint64_t group_of(std::uint64_t bucket) {
    return bucket / kGroupBuckets;
  }
  [[nodiscard]] std::uint64_t groups() const {
    return (buckets + kGroupBuckets - 1) / kGroupBuckets;
  }
  /// Number of the block with a bucket, or with a part of the tail.
  [[nodiscard]] std::uint64_t block_of(std::uint64_t bucket) const {
    return 1 + bucket + (bucket < buckets ? group_of(bucket) : groups());
  }
  [[nodiscard]] std::uint64_t filter_of(std::uint64_t group) const {
    return 1 + std::min((group + 1) * kGroupBuckets, buckets) + group;
  }
  /// Number of blocks with entries.
  [[nodiscard]] std::uint64_t entry_blocks() const { return buckets + tail; }
  /// Number of all blocks, the header included.
  [[nodiscard]] std::uint64_t blocks() const { return 1 + buckets + groups() + tail; }
};

/// The first block of a run.
struct RunHeader {
  SeriesId series{};
  std::uint32_t number = 0;
  std::uint64_t entries = 0;
  RunShape shape;
  std::uint64_t id_bytes = 0;     ///< Bytes of the set of chunk ids after the blocks.
  std::uint64_t id_checksum = 0;  ///< XXH3-64 of the set.

  [[nodiscard]] std::uint64_t file_bytes() const { return shape.blocks() * kBlockBytes + id_bytes; }
};

using Block = std::array<std::byte, kBlockBytes>;

/// Completes a block with its checksum, which depends on the block's place.
void seal_block(Block& block, std::uint64_t number);
[[nodiscard]] bool is_sound(std::span<const std::byte, kBlockBytes> block, std::uint64_t number);

[[nodiscard]] Block encode_run_header(const RunHeader& header);
/// Errors: kCorrupt.
[[nodiscard]] Result<RunHeader> decode_run_header(std::span<const std::byte, kBlockBytes> block);

/// Returns the entry at a position of a block; an empty entry after the last.
[[nodiscard]] Entry entry_at(std::span<const std::byte, kBlockBytes> block, std::size_t position);
void put_entry(Block& block, std::size_t position, const Entry& entry);

/// A filter block is a Bloom filter of the entries whose bucket is in the group.
void add_to_filter(Block& filter, const Tag& tag);
[[nodiscard]] bool may_contain(std::span<const std::byte, kBlockBytes> filter, const Tag& tag);

/// A reference to a run in the snapshot of a version.
struct RunRef {
  std::uint32_t number = 0;
  std::uint64_t entries = 0;
  std::uint64_t header_checksum = 0;
  bool operator==(const RunRef&) const = default;
};

/// Encode and decode a snapshot: the runs of the index, oldest first.
/// Errors: kCorrupt for damage, or a snapshot of a different series or version; kUnsupported for a
/// sound header of layout 1, which scan_snapshot() reads.
[[nodiscard]] std::string encode_snapshot(SeriesId series, VersionNumber version,
                                          const std::vector<RunRef>& runs);
[[nodiscard]] Result<std::vector<RunRef>> decode_snapshot(std::string_view bytes, SeriesId series,
                                                          VersionNumber version);
/// Returns the version in a snapshot's header, without any check; 0 without a header.
[[nodiscard]] VersionNumber snapshot_version(std::string_view bytes);
/// Maximum size of a snapshot of this layout, in bytes.
inline constexpr std::size_t kSnapshotBytesMax = 1U << 20;
/// Number of leading bytes that determine the layout of a snapshot.
inline constexpr std::size_t kSnapshotHeaderBytes = 32;

}  // namespace varve::index
