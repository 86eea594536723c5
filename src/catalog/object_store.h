// SPDX-License-Identifier: Apache-2.0
// Directory pages and long recipes: immutable objects, shared between neighbouring versions.
//
// The writer does not store an object again if the parent version has the same object at the same
// place, so an unchanged directory takes no space. As with chunks, the writer compares only with
// the neighbouring version: each object lives for an interval of versions. Keys ascend in the order
// of storing, which keeps a version's objects together and the catalog's pages full.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/page_cache.h"
#include "format/dir_node.h"
#include "format/recipe_decoder.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// Returns the maximum raw size, in bytes, of an object of `table`.
[[nodiscard]] std::size_t object_bytes_max(meta::TableIndex table);

/// Encode and decode an object's record of the raw bytes (docs/FORMAT.md §7). decode_object()
/// verifies the raw bytes and allocates at most `bytes_max` bytes.
/// Errors: kCorrupt if the record is damaged or has more than `bytes_max` raw bytes.
[[nodiscard]] std::string encode_object(std::string_view raw);
[[nodiscard]] Result<std::string> decode_object(format::NodeId id, std::string_view record,
                                                std::size_t bytes_max);

/// Reads the objects of a series; caches recently used decoded pages. Thread-safe.
class ObjectReader {
 public:
  /// Caches pages in `cache`; without `cache`, in a private cache.
  /// Lifetime: `catalog` and `cache` must outlive the reader.
  ObjectReader(const meta::Env& catalog, SeriesId series, PageCache* cache = nullptr)
      : catalog_(catalog),
        series_(series),
        own_cache_(cache == nullptr ? std::make_unique<PageCache>() : nullptr),
        cache_(cache == nullptr ? *own_cache_ : *cache) {}

  /// Returns a decoded page.
  /// Errors: kCorrupt if the object is missing or damaged, or refers to an object that is not
  /// older.
  [[nodiscard]] Result<std::shared_ptr<const format::DirPage>> page(format::NodeId id);
  /// Returns a decoded page that accounts for exactly `span` entries (as format::span_of_page).
  /// Walks call page() at each step down, so no tree has more entries than the root states, however
  /// often the tree refers to the same page.
  /// Errors: as above, and kCorrupt for another number of entries.
  [[nodiscard]] Result<std::shared_ptr<const format::DirPage>> page(format::NodeId id,
                                                                    std::uint64_t span);
  /// As PageCache::leaf_with() and keep_leaf(). `root`: top page of the version's root directory.
  [[nodiscard]] std::optional<PageCache::PlacedLeaf> leaf_with(format::NodeId root, Rank rank) {
    return cache_.leaf_with({series_, root.value}, rank);
  }
  void keep_leaf(format::NodeId root, PageCache::PlacedLeaf leaf) {
    leaf.root = {series_, root.value};
    cache_.keep_leaf(std::move(leaf));
  }
  /// Returns the recipe of a file of `file_bytes` bytes.
  /// Errors: kCorrupt if the recipe is missing or damaged, or has another size.
  [[nodiscard]] Result<std::shared_ptr<const format::Recipe>> recipe(format::NodeId id,
                                                                     std::uint64_t file_bytes);
  /// Passes the runs of a recipe to `visit`, in memory independent of the number of runs.
  /// Errors: as recipe(), perhaps after some runs were passed.
  [[nodiscard]] Result<void> for_each_run(format::NodeId id, std::uint64_t file_bytes,
                                          const format::RecipeDecoder::Visitor& visit);

  /// Returns an object's raw bytes, verified.
  /// Errors: kCorrupt if the object is missing or damaged, or has more than `bytes_max` raw bytes.
  [[nodiscard]] Result<std::string> raw(meta::TableIndex table, format::NodeId id,
                                        std::size_t bytes_max);
  /// Returns the XXH3-64 of the raw bytes, as stored in the record.
  [[nodiscard]] Result<std::uint64_t> checksum(meta::TableIndex table, format::NodeId id);

 private:
  [[nodiscard]] Result<PageCache::Page> find_page(format::NodeId id);
  [[nodiscard]] Result<void> decode_recipe(format::NodeId id, std::uint64_t file_bytes,
                                           format::RecipeDecoder& decoder);

  const meta::Env& catalog_;
  const SeriesId series_;
  const std::unique_ptr<PageCache> own_cache_;
  PageCache& cache_;
};

/// The objects of a directory of the parent version: the directory's pages and the files' recipes.
class PreviousObjects {
 public:
  PreviousObjects() = default;
  /// Collects the objects of the directory whose top page is `root`.
  [[nodiscard]] static Result<PreviousObjects> collect(ObjectReader& objects, format::NodeId root);

 private:
  friend class ObjectWriter;
  std::multimap<std::pair<meta::TableIndex, std::uint64_t>, format::NodeId> by_checksum_;
};

/// Stores a version's objects in batches, one transaction per flush. Objects left by a failed seal
/// are unreachable, and are overwritten by the next attempt. Not thread-safe.
class ObjectWriter {
 public:
  ObjectWriter(const meta::Env& catalog, ObjectReader& reader, SeriesId series, VersionNumber birth)
      : catalog_(catalog), reader_(reader), series_(series), birth_(birth) {}

  /// Returns the id of the page: of an equal page in `previous`, or of the newly stored page. The
  /// caller must put the children before.
  [[nodiscard]] Result<format::NodeId> put_page(const format::DirPage& page,
                                                const PreviousObjects& previous);
  [[nodiscard]] Result<format::NodeId> put_recipe(const format::Recipe& recipe,
                                                  const PreviousObjects& previous);
  /// Stores the batched objects.
  [[nodiscard]] Result<void> flush();

  [[nodiscard]] std::uint64_t new_objects() const { return next_; }
  [[nodiscard]] std::uint64_t new_bytes() const { return new_bytes_; }

 private:
  [[nodiscard]] Result<format::NodeId> put(meta::TableIndex table, const std::string& raw,
                                           const PreviousObjects& previous);

  static constexpr std::size_t kBatchBytesMax = 4U << 20;
  struct Pending {
    meta::TableIndex table;
    format::NodeId id;
    std::string record;
  };
  const meta::Env& catalog_;
  ObjectReader& reader_;
  const SeriesId series_;
  const VersionNumber birth_;
  std::vector<Pending> pending_;
  std::size_t pending_bytes_ = 0;
  std::uint32_t next_ = 0;
  std::uint64_t new_bytes_ = 0;
};

}  // namespace varve::catalog
