// SPDX-License-Identifier: Apache-2.0
// Manifests: the catalog's records of one version, in a separate file, for rebuilding a lost
// catalog. The labels of a series have the same form and hold the records that change later.
// docs/FORMAT.md §9.
//
//   header (64 bytes) | blocks: block header (20 bytes), stored bytes | ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "format/frame_codec.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

inline constexpr std::uint32_t kManifestMagic = 0x4e4d5656;  // "VVMN" in file order
inline constexpr std::size_t kManifestHeaderBytes = 64;
inline constexpr std::size_t kManifestBlockHeaderBytes = 20;
/// Maximum size of a block before compression.
inline constexpr std::size_t kManifestBlockRawMax = kFrameRawBytesMax;

enum class ManifestKind : std::uint16_t {
  kVersion = 1,  ///< Manifest of one version; immutable once in place.
  kLabels = 2,   ///< Labels of a series: the live versions and their names.
  kUpdate = 3,   ///< A change of labels, after the labels or another change in the same file.
};

/// Upper bound of the bytes of a piece besides key and value: the kind, and the varints of the two
/// lengths.
inline constexpr std::size_t kManifestPieceOverhead = 1 + 2 + 3;

/// The kind of a record. The key is the key in the catalog's table, without the series.
enum class ManifestRecord : std::uint8_t {
  kSeries = 1,         ///< No key. The catalog's value.
  kVersion = 2,        ///< u32 number. The catalog's value.
  kNode = 3,           ///< u64 node id. The page's raw bytes.
  kRecipe = 4,         ///< u64 node id. The recipe's raw bytes.
  kVersionChunks = 5,  ///< u32 number. The catalog's value.
  kVersionLinks = 6,   ///< u32 number. The catalog's value.
  kRetention = 7,      ///< u32 number. The catalog's value.
  kSetting = 8,        ///< The setting's name. The catalog's value.
  kSuperblock = 9,     ///< No key. The whole of varve.repo.
  kRemoved = 10,       ///< u32 number. Labels and updates: the version is gone. No value.
  kBirths = 11,        ///< u32 number. format::Births: the births of the version's chunks.
};

struct ManifestHeader {
  ManifestKind kind = ManifestKind::kVersion;
  /// True in an update, and in labels that updates may follow (format 2); always false in format 1.
  bool grows = false;
  SeriesId series{};
  VersionNumber number{};          ///< 0 in labels and updates.
  std::uint32_t blocks = 0;        ///< Number of blocks that follow.
  std::uint64_t stored_bytes = 0;  ///< Size of all blocks with their headers.
  std::uint64_t records = 0;       ///< Number of records; each piece of a cut value counts.
  /// In labels and updates, the number of the mirrored transaction of the catalog; otherwise 0.
  std::uint64_t stamp = 0;
  bool operator==(const ManifestHeader&) const = default;
};

[[nodiscard]] std::string encode_manifest_header(const ManifestHeader& header);
/// Decodes a header. `bytes` may be longer than the header.
/// Errors: kCorrupt; kUnsupported for a newer format.
[[nodiscard]] Result<ManifestHeader> decode_manifest_header(std::span<const std::byte> bytes);

/// A record, or a piece of one. Lifetime: the views die with the block.
struct ManifestPiece {
  ManifestRecord what = ManifestRecord::kSeries;
  bool later = false;  ///< The value continues the value of the previous piece.
  bool more = false;   ///< The next piece continues the value.
  std::string_view key;
  std::string_view value;
};

/// Compression of a version's manifest. A manifest is written once and read rarely, so a small file
/// is worth more than fast compression.
inline constexpr Compression kManifestCompression{Codec::kZstd, 6};

/// Returns the place of a block, for the block's codec. The header must have its kind, series and
/// number.
[[nodiscard]] FramePlace place_of_block(const ManifestHeader& header, std::uint32_t block);

/// Cuts records into blocks. Not thread-safe.
class ManifestEncoder {
 public:
  using Sink = std::function<Result<void>(std::string_view bytes)>;

  /// Starts a manifest. `identity` has the kind, series, number and stamp. `sink` receives the
  /// bytes after the header, block by block.
  /// Lifetime: `codec` must outlive the encoder.
  ManifestEncoder(const ManifestHeader& identity, const FrameCodec& codec,
                  const Compression& compression, Sink sink);

  /// Adds a record. A value of more than a block becomes several pieces. Keys have at most 255
  /// bytes.
  [[nodiscard]] Result<void> add(ManifestRecord what, std::string_view key, std::string_view value);
  /// Passes the last block to the sink and returns the header of the whole file.
  [[nodiscard]] Result<ManifestHeader> finish();

 private:
  [[nodiscard]] Result<void> add_piece(const ManifestPiece& piece);
  [[nodiscard]] Result<void> end_block();

  ManifestHeader header_;
  const FrameCodec& codec_;
  const Compression compression_;
  const Sink sink_;
  std::string block_;
};

/// Decodes a block's header. The entry's chunk counts are unused.
/// Errors: kCorrupt.
[[nodiscard]] Result<FrameEntry> decode_manifest_block_header(std::span<const std::byte> header);

/// Calls `visit` for each piece of a block's raw bytes.
/// Errors: kCorrupt for bytes that are not records; the errors of `visit`.
[[nodiscard]] Result<void> for_each_manifest_piece(
    std::span<const std::byte> raw, const std::function<Result<void>(const ManifestPiece&)>& visit);

}  // namespace varve::format
