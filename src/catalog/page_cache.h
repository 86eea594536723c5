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

/// Caches the most recently used decoded directory pages, of all series together. Thread-safe.
class PageCache {
 public:
  using Key = std::pair<SeriesId, std::uint64_t>;  ///< A series and the id of a page in the series.
  struct Page {
    std::shared_ptr<const format::DirPage> page;
    std::uint64_t span = 0;  ///< As format::span_of_page().
  };

  [[nodiscard]] std::optional<Page> find(const Key& key);
  /// Caches a page of `bytes` bytes of memory.
  void add(const Key& key, const Page& page, std::size_t bytes);

  /// A leaf page at its place in a version's tree.
  struct PlacedLeaf {
    Key root;  ///< Top page of the version's root directory.
    std::shared_ptr<const format::DirPage> page;
    Rank first = 0;      ///< Rank of the first entry.
    Rank end = 0;        ///< Rank after the last entry and everything below.
    Rank directory = 0;  ///< Rank of the page's directory.
  };
  /// Returns the leaf last kept by keep_leaf(), if the leaf belongs to the tree of `root` and has
  /// `rank`, in or below its entries.
  [[nodiscard]] std::optional<PlacedLeaf> leaf_with(const Key& root, Rank rank);
  /// Keeps a leaf in place of the previous leaf.
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
