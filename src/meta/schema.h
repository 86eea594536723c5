// SPDX-License-Identifier: Apache-2.0
// Every table of Varve's two LMDB environments, on one page. Numbers in keys are big-endian, so
// that keys sort in the order of the numbers; docs/FORMAT.md specifies the values. A checksum of 4
// bytes follows every value (meta/lmdb.h).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/types.h"

namespace varve::meta {

/// REPO/catalog: everything about sealed versions, and where every chunk is.
namespace catalog {
enum Table : TableIndex {
  kSeries = 0,     ///< series u32 -> SeriesRecord
  kVersions,       ///< series u32, number u32 -> VersionRecord
  kNodes,          ///< series u32, node id u64 -> ObjectRecord of a directory page
  kRecipes,        ///< series u32, node id u64 -> ObjectRecord of a recipe
  kContainers,     ///< store u32, container u32 -> ContainerRecord
  kLocations,      ///< store u32, first chunk id u64 -> LocationRecord
  kVersionChunks,  ///< series u32, number u32 -> the version's chunk ids (base::IdRuns)
  kVersionLinks,   ///< series u32, number u32 -> the version's hard-linked names
                   ///< (catalog::LinkTable)
  kSegments,       ///< store u32, segment u32 -> SegmentRecord
  kCounters,       ///< store u32 -> CounterRecord
  kRetention,      ///< series u32, number u32 -> RetentionRecord
  kSettings,       ///< name -> value; "arrange" -> ArrangeSettings, "disk" -> DiskRecord
  kNames,          ///< 1, name -> series u32; 2, series u32, name -> number u32. Derived. In an
                   ///< encrypted catalog, hashes stand for the names (Env::key_of_name())
  kReferences,     ///< series u32 -> number u32; series u32, chunk id u64 -> references. Derived
  kPoolUse,        ///< series u32, number u32 -> the pool's containers used by the version
  kPoolUsers,      ///< container u32 -> number of sealed versions with the container. Derived
  kRewriteCounts,  ///< series u32, number u32 -> RewriteCounts of a sealed version
  kAliases,        ///< first chunk id u64 of the pool -> catalog::AliasRecord
  kBirths,         ///< store u32, birth u32 -> format::Birth
};
inline constexpr std::array<const char*, 19> kTables = {
    "series",     "versions",       "nodes",         "recipes",    "containers",
    "locations",  "version_chunks", "version_links", "segments",   "counters",
    "retention",  "settings",       "names",         "references", "pool_use",
    "pool_users", "rewrite_counts", "aliases",       "births"};
/// Number of tables at the end not made by earlier releases.
inline constexpr std::size_t kTablesOptional = 7;
}  // namespace catalog

/// REPO/staging/SERIES-NUMBER/overlay: the mutable tree of a series' open version. The seal removes
/// the overlay. The overlay of a version based on a sealed version holds only the differences. A
/// removed inode is a record without bytes, and a removed name is a record with ino 0.
namespace overlay {
enum Table : TableIndex {
  kState = 0,  ///< "next_ino" -> u64; "format" -> u64, missing in the first format; and more
  kInodes,     ///< ino u64 -> OpenInode
  kDirents,    ///< parent ino u64, name -> ino u64; if encrypted, a hash -> ino u64, name
  kTails,      ///< ino u64 -> bytes of a file after its recipe, not yet cut into chunks
};
inline constexpr std::array<const char*, 4> kTables = {"state", "inodes", "dirents", "tails"};
}  // namespace overlay

inline std::string series_key(SeriesId series) {
  return base::be32(static_cast<std::uint32_t>(series));
}
inline std::string version_key(SeriesId series, VersionNumber number) {
  return series_key(series) + base::be32(static_cast<std::uint32_t>(number));
}
/// Returns the keys of an open version's overlay. `ring` is null in a plain repository.
inline EnvKeys overlay_keys(std::shared_ptr<const crypto::KeyRing> ring, SeriesId series,
                            VersionNumber number) {
  return {std::move(ring), crypto::Purpose::kOverlay, version_key(series, number)};
}
inline std::string store_key(StoreId store) {
  return base::be32(static_cast<std::uint32_t>(store));
}
inline std::string container_key(StoreId store, ContainerNumber container) {
  return store_key(store) + base::be32(static_cast<std::uint32_t>(container));
}
inline std::string segment_key(StoreId store, SegmentNumber segment) {
  return store_key(store) + base::be32(static_cast<std::uint32_t>(segment));
}
inline std::string location_key(StoreId store, ChunkId first) {
  return store_key(store) + base::be64(first.value);
}
inline std::string object_key(SeriesId series, std::uint64_t node_id) {
  return series_key(series) + base::be64(node_id);
}
inline std::string pool_users_key(ContainerNumber container) {
  return base::be32(static_cast<std::uint32_t>(container));
}
inline std::string birth_key(StoreId store, VersionNumber birth) {
  return store_key(store) + base::be32(static_cast<std::uint32_t>(birth));
}
inline std::string alias_key(ChunkId first) { return base::be64(first.value); }
inline std::string ino_key(std::uint64_t ino) { return base::be64(ino); }
inline std::string dirent_key(std::uint64_t parent, std::string_view name) {
  return base::be64(parent).append(name);
}

}  // namespace varve::meta
