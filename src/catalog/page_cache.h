// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "format/dir_node.h"
#include "varve/browse.h"
#include "varve/types.h"

namespace varve::catalog {

/// Keeps the decoded directory pages that were used last, of all series together. Thread-safe.
class PageCache {
 public:
  using Key = std::pair<SeriesId, std::uint64_t>;  ///< A series and the id of a page in it.
  struct Page {
    std::shared_ptr<const format::DirPage> page;
    std::uint64_t span = 0;  ///< As format::span_of_page().
  };

  [[nodiscard]] std::optional<Page> find(const Key& key);
  /// Keeps a page that takes `bytes` of memory.
  void add(const Key& key, const Page& page, std::size_t bytes);

  /// A leaf page at its place in a version's tree.
  struct PlacedLeaf {
    Key root;  ///< Top page of the version's root directory.
    std::shared_ptr<const format::DirPage> page;
    Rank first = 0;      ///< Rank of its first entry.
    Rank end = 0;        ///< Rank after its last entry, and after all entries below that.
    Rank directory = 0;  ///< Rank of the directory that has the page.
  };
  /// Returns the leaf that keep_leaf() kept last, if it is in this tree and has the rank, or one
  /// of its entries has it below itself.
  [[nodiscard]] std::optional<PlacedLeaf> leaf_with(const Key& root, Rank rank);
  /// Keeps a leaf in place of the one before.
  void keep_leaf(PlacedLeaf leaf);

 private:
  struct Entry {
    Key key;
    Page page;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kPagesMax = 2048;
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;

  std::mutex mutex_;
  std::list<Entry> pages_;  // Most recently used first.
  std::size_t bytes_ = 0;
  std::map<Key, std::list<Entry>::iterator> place_of_;
  std::optional<PlacedLeaf> leaf_;
};

}  // namespace varve::catalog
