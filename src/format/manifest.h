// SPDX-License-Identifier: Apache-2.0
// Manifests: what the catalog knows of one version, in a file of its own, so that a lost catalog
// can be made again. The labels of a series, in the same form, hold what changes later.
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

#include "format/container.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

inline constexpr std::uint32_t kManifestMagic = 0x4e4d5656;  // "VVMN" in file order
inline constexpr std::size_t kManifestHeaderBytes = 64;
inline constexpr std::size_t kManifestBlockHeaderBytes = 20;
/// Of a block, before compression.
inline constexpr std::size_t kManifestBlockRawMax = kFrameRawBytesMax;

enum class ManifestKind : std::uint16_t {
  kVersion = 1,  ///< Manifest of one version; never changed once it is in place.
  kLabels = 2,   ///< Labels of a series: the live versions and their names.
};

/// The kind of a record. The record's key is that of the catalog's table, without the series.
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
};

struct ManifestHeader {
  ManifestKind kind = ManifestKind::kVersion;
  SeriesId series{};
  VersionNumber number{};    ///< 0 in labels.
  std::uint32_t blocks = 0;  ///< How many follow.
  std::uint64_t stored_bytes =
      0;                      ///< Size of all blocks, with their headers: the rest of the file.
  std::uint64_t records = 0;  ///< Pieces, where a value takes several.
  /// In labels: number of the catalog's transaction that they mirror. Else 0.
  std::uint64_t stamp = 0;
  bool operator==(const ManifestHeader&) const = default;
};

[[nodiscard]] std::string encode_manifest_header(const ManifestHeader& header);
/// kCorrupt, or kUnsupported for a newer format. `bytes` may be longer than the header.
[[nodiscard]] Result<ManifestHeader> decode_manifest_header(std::span<const std::byte> bytes);

/// A record, or a piece of one; views that die with the block.
struct ManifestPiece {
  ManifestRecord what = ManifestRecord::kSeries;
  bool later = false;  ///< It goes on with the value of the piece before.
  bool more = false;   ///< The next piece goes on with the value.
  std::string_view key;
  std::string_view value;
};

/// Cuts records into blocks. Not thread-safe.
class ManifestEncoder {
 public:
  using Sink = std::function<Result<void>(std::string_view bytes)>;

  /// `sink` gets the bytes that follow the header, block by block. `identity`: kind, series,
  /// number and stamp.
  ManifestEncoder(const ManifestHeader& identity, Codec codec, Sink sink);

  /// A value of more than a block becomes several pieces. Keys have at most 255 bytes.
  [[nodiscard]] Result<void> add(ManifestRecord what, std::string_view key, std::string_view value);
  /// Gives the last block away; the header to put in front of all.
  [[nodiscard]] Result<ManifestHeader> finish();

 private:
  [[nodiscard]] Result<void> add_piece(const ManifestPiece& piece);
  [[nodiscard]] Result<void> end_block();

  ManifestHeader header_;
  const Codec codec_;
  const Sink sink_;
  std::string block_;
};

/// A block's entry: FrameEntry says where and how it is stored; the chunk counts are not used.
[[nodiscard]] Result<FrameEntry> decode_manifest_block_header(std::span<const std::byte> header);

/// Calls `visit` for each piece of a block's raw bytes. kCorrupt if they are not records.
[[nodiscard]] Result<void> for_each_manifest_piece(
    std::span<const std::byte> raw, const std::function<Result<void>(const ManifestPiece&)>& visit);

}  // namespace varve::format
