// SPDX-License-Identifier: Apache-2.0
// Directory nodes: the immutable pages of a sealed tree. docs/FORMAT.md §6.
//
// A directory is a tree of pages split at content-defined names: leaves hold entries, inner pages
// hold references to pages. Objects are numbered in the order of storing, children before parents,
// so a reference always leads to a lower number: no cycles.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/recipe.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// Id of a stored page or recipe inside its series. The upper half is the version that first stored
/// the object, the lower half the object's place in the version. 0 is no object.
struct NodeId {
  std::uint64_t value = 0;
  static constexpr NodeId make(VersionNumber birth, std::uint32_t ordinal) {
    return NodeId{(static_cast<std::uint64_t>(birth) << 32) | ordinal};
  }
  auto operator<=>(const NodeId&) const = default;
};

/// A file's attributes, content and name, as held by a leaf page.
struct DirEntry {
  std::string name;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t rdev = 0;
  Timestamp mtime;
  std::uint32_t nlink = 1;
  /// Id of the hard links; non-zero if nlink > 1 and not a directory; below 2^62.
  std::uint64_t link_group = 0;
  Xattrs xattrs;
  std::string symlink_target;
  // Regular files: the size, and a short recipe itself or a long recipe's id.
  std::uint64_t size = 0;
  std::uint64_t data_bytes = 0;
  std::optional<Recipe> recipe;
  NodeId recipe_id{};
  // Directories: the root page and the number of entries below, at any depth.
  NodeId child{};
  std::uint64_t subtree_entries = 0;
  std::uint32_t subdirectories = 0;  ///< Number of immediate subdirectories; st_nlink is 2 more.
  bool operator==(const DirEntry&) const = default;
};

/// A reference to a page, in an inner page.
struct PageRef {
  std::string first_name;
  NodeId page{};
  std::uint32_t entries = 0;          ///< Entries of the directory in all leaves below the page.
  std::uint64_t subtree_entries = 0;  ///< The same entries and everything below each entry.
  bool operator==(const PageRef&) const = default;
};

struct LeafPage {
  std::vector<DirEntry> entries;  ///< Names ascend in byte order.
  bool operator==(const LeafPage&) const = default;
};
struct InnerPage {
  std::vector<PageRef> refs;
  bool operator==(const InnerPage&) const = default;
};
using DirPage = std::variant<LeafPage, InnerPage>;

/// Maximum encoded size of a page, in bytes; the decoder refuses a larger page before decoding.
inline constexpr std::size_t kDirPageBytesMax = 1U << 20;
/// Maximum memory, in bytes, of a decoded page with several entries or references. The writer ends
/// a page at 64 KiB, which takes less than half of the limit.
inline constexpr std::size_t kDirPageMemoryMax = 1U << 20;
/// Maximum number of runs of a recipe inside an entry. A longer recipe is a separate object.
inline constexpr std::size_t kInlineRecipeRunsMax = 8;

[[nodiscard]] std::string encode_dir_page(const DirPage& page);
/// Decodes a page. Checks the order, types and bounds, the names (refuses '/', NUL, "." and ".."),
/// and that all entries below the page fit one version. Errors: kCorrupt.
[[nodiscard]] Result<DirPage> decode_dir_page(std::string_view bytes);

/// Returns the number of entries in a page's leaves and everything below the entries.
[[nodiscard]] std::uint64_t span_of_page(const DirPage& page);
/// Returns the approximate memory of a decoded page, in bytes.
[[nodiscard]] std::size_t memory_of_page(const DirPage& page);

/// Encode and decode one entry on its own, the form in version records and in open versions'
/// inodes. The name may be empty.
[[nodiscard]] std::string encode_dir_entry(const DirEntry& entry);
[[nodiscard]] Result<DirEntry> decode_dir_entry(std::string_view bytes);

/// Encode and decode a recipe stored as a separate object.
[[nodiscard]] std::string encode_recipe_object(const Recipe& recipe);
[[nodiscard]] Result<Recipe> decode_recipe_object(std::string_view bytes);

/// Returns whether a page of `level` (0 = leaf) ends before the entry called `name`. The result is
/// a pure function of the arguments, so an insertion moves only the adjacent boundaries.
[[nodiscard]] bool is_page_boundary(std::string_view name, unsigned level);

}  // namespace varve::format
