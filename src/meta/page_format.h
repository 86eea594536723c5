// SPDX-License-Identifier: Apache-2.0
// The parts of LMDB 0.9's file format on 64-bit machines needed by the page check.
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve::meta {

using PageNumber = std::uint64_t;

/// Length of a page's header: the page's number (8 bytes), 2 unused bytes, flags (2), and the ends
/// of the two parts that grow towards each other (2 and 2). For a long value, its number of pages
/// (4) replaces the two ends. Offsets of the nodes follow (2 each), in the order of keys.
inline constexpr std::size_t kPageHeader = 16;
inline constexpr std::size_t kFlagsAt = 10;
inline constexpr std::size_t kLowerAt = 12;
inline constexpr std::size_t kUpperAt = 14;
inline constexpr std::size_t kValuePagesAt = 12;
/// Length of a node's header. In a leaf: length of the value (4), flags (2), length of the key (2).
/// In a branch, the child's number replaces the first two fields. The key follows, then the value
/// or the number of its first page.
inline constexpr std::size_t kNodeHeader = 8;
inline constexpr std::size_t kDatabaseBytes = 48;
inline constexpr std::size_t kMetaBytes = 136;
inline constexpr std::uint32_t kMagic = 0xBEEFC0DE;
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr PageNumber kNoPage = ~std::uint64_t{0};
inline constexpr PageNumber kMetaPages = 2;
inline constexpr std::size_t kPageBytesMin = 512;
inline constexpr std::size_t kPageBytesMax = 32768;
inline constexpr unsigned kDepthMax = 31;  ///< LMDB's cursors have room for one more level.
inline constexpr std::size_t kKeyBytesMax = 511;

enum PageFlag : std::uint16_t { kBranch = 1, kLeaf = 2, kLongValue = 4, kMeta = 8 };
enum NodeFlag : std::uint16_t { kValueElsewhere = 1, kDatabase = 2 };
inline constexpr std::uint16_t kIntegerKeys = 8;  ///< Flag of a database.
/// LMDB's handle of the main tree: the names of all tables.
inline constexpr unsigned kNamesTable = 1;

/// The record of a tree in a meta page or a named entry.
struct Database {
  std::uint32_t page_bytes;  ///< Valid only in the first record of a meta page.
  std::uint16_t flags;
  std::uint16_t depth;
  std::uint64_t branch_pages;
  std::uint64_t leaf_pages;
  std::uint64_t value_pages;
  std::uint64_t entries;
  PageNumber root;
};
static_assert(sizeof(Database) == kDatabaseBytes);

/// Content of the meta pages 0 and 1, after the page's header.
struct Meta {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t address;
  std::uint64_t map_bytes;
  Database free;
  Database main;
  PageNumber last_page;
  std::uint64_t commit;
};
static_assert(sizeof(Meta) == kMetaBytes);

}  // namespace varve::meta
