// SPDX-License-Identifier: Apache-2.0
// A sealed version's tree: finding entries by name and by rank, walking the tree in tree order, and
// building the tree.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "catalog/object_store.h"
#include "format/dir_node.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::catalog {

/// An entry with its place in the tree.
/// Lifetime: valid as long as `page` is held. The root has no page.
struct TreeEntry {
  std::shared_ptr<const format::DirPage> page;
  const format::DirEntry* entry = nullptr;
  Rank rank = 0;
  Rank parent = 0;
};

/// Yields entries in tree order (depth first, names ascending), never more than the root states.
/// Not thread-safe.
/// Errors: kCorrupt if a page accounts for a different number of entries than its reference states.
class TreeWalker {
 public:
  TreeWalker(ObjectReader& objects, const format::DirEntry& root);

  /// Positions the walk: the next next() returns the entry with `rank`. Rank 0 is the root.
  [[nodiscard]] Result<void> seek(Rank rank);
  [[nodiscard]] Result<std::optional<TreeEntry>> next();

 private:
  struct Frame {
    format::NodeId id{};
    std::shared_ptr<const format::DirPage> page;  // Held only in the topmost kPagesHeld frames.
    std::size_t index = 0;
    Rank next_rank = 0;
    Rank directory = 0;
    std::size_t level = 0;  // Number of pages above the page in its directory.
  };
  [[nodiscard]] Result<void> push(format::NodeId id, std::uint64_t span, Rank next_rank,
                                  Rank directory, std::size_t level);
  [[nodiscard]] Result<void> hold_top();

  static constexpr std::size_t kDepthMax = 65536;  // Bounds the depth of a hostile tree.
  static constexpr std::size_t kPagesHeld = 64;    // Bounds the memory of a walk.
  ObjectReader& objects_;
  const format::DirEntry& root_;
  std::vector<Frame> stack_;
  bool at_root_ = true;
};

/// Finds the entries of a sealed tree. Thread-safe.
/// Lifetime: the reader and the root must outlive the DirTree.
class DirTree {
 public:
  DirTree(ObjectReader& objects, const format::DirEntry& root) : objects_(objects), root_(root) {}

  /// Returns the entry with `rank`. Errors: kNotFound if the version has no such rank.
  [[nodiscard]] Result<TreeEntry> get(Rank rank) const;
  /// Returns the entry called `name` in `directory`. Errors: kNotFound, kNotDirectory.
  [[nodiscard]] Result<TreeEntry> lookup(const TreeEntry& directory, std::string_view name) const;
  /// Calls `visit` with the entries of a directory with a rank > `after`, in name order, until
  /// `visit` returns false.
  [[nodiscard]] Result<void> list(const TreeEntry& directory, Rank after,
                                  const std::function<bool(const TreeEntry&)>& visit) const;

 private:
  ObjectReader& objects_;
  const format::DirEntry& root_;
};

/// Yields the entries of a directory in name order, without descending into subdirectories. Not
/// thread-safe.
class DirCursor {
 public:
  /// `page`: the directory's top page. `directory`: the directory's rank.
  DirCursor(ObjectReader& objects, format::NodeId page, Rank directory)
      : objects_(objects), page_(page), directory_(directory) {}

  /// Positions the cursor: the next next() returns the first entry with a name > `after`, or the
  /// first entry of all for "". The caller must call seek() once before next().
  [[nodiscard]] Result<void> seek(std::string_view after);
  [[nodiscard]] Result<std::optional<TreeEntry>> next();

 private:
  struct Frame {
    std::shared_ptr<const format::DirPage> page;
    std::size_t index = 0;
    Rank next_rank = 0;
  };
  ObjectReader& objects_;
  const format::NodeId page_;
  const Rank directory_;
  std::vector<Frame> stack_;
};

/// Returns the number of names in the directory with the top page `page`.
[[nodiscard]] Result<std::uint64_t> count_names(ObjectReader& objects, format::NodeId page);

/// Builds a directory's pages from entries in name order. Reuses the equal pages of `previous`.
class DirBuilder {
 public:
  DirBuilder(ObjectWriter& objects, const PreviousObjects& previous)
      : objects_(objects), previous_(previous) {}

  struct Built {
    format::NodeId root{};
    std::uint64_t subtree_entries = 0;
    std::uint32_t subdirectories = 0;
  };

  [[nodiscard]] Result<void> add(format::DirEntry entry);
  [[nodiscard]] Result<Built> finish();

 private:
  [[nodiscard]] Result<void> close_leaf();
  /// Adds a reference to `level` (1 = above the leaves). Closes a page if required by the name or
  /// the size.
  [[nodiscard]] Result<void> add_ref(std::size_t level, format::PageRef ref);
  [[nodiscard]] Result<void> close_inner(std::size_t level);

  static constexpr std::size_t kPageBytesMax = 64U << 10;
  ObjectWriter& objects_;
  const PreviousObjects& previous_;
  format::LeafPage leaf_;
  std::size_t leaf_bytes_ = 0;
  struct Level {
    format::InnerPage page;
    std::size_t bytes = 0;
  };
  std::vector<Level> levels_;  // levels_[0] is above the leaves.
  Built built_;
};

}  // namespace varve::catalog
