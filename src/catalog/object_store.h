// SPDX-License-Identifier: Apache-2.0
// Directory pages and long recipes: immutable objects named by their content.
//
// Each object counts the stored objects and versions that refer to it. An object that is
// stored already is not stored again, nor are its references counted again: so an unchanged
// directory costs nothing, and deletion can free exactly what nothing else refers to.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/dir_node.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve::catalog {

struct NodeIdHash {
  std::size_t operator()(const format::NodeId& id) const;
};

/// Reads one series' objects; keeps recently used pages decoded. Thread-safe.
class ObjectReader {
 public:
  ObjectReader(const meta::Env& catalog, SeriesId series) : catalog_(catalog), series_(series) {}

  /// kCorrupt if the object is missing or its bytes do not match its id.
  [[nodiscard]] Result<std::shared_ptr<const format::DirPage>> page(const format::NodeId& id);
  [[nodiscard]] Result<std::shared_ptr<const format::Recipe>> recipe(const format::NodeId& id);

 private:
  [[nodiscard]] Result<std::string> load(meta::TableIndex table, const format::NodeId& id);

  static constexpr std::size_t kPagesCached = 2048;
  const meta::Env& catalog_;
  const SeriesId series_;
  std::mutex mutex_;
  using Pages = std::list<std::pair<format::NodeId, std::shared_ptr<const format::DirPage>>>;
  Pages pages_;  // Most recently used first.
  std::unordered_map<format::NodeId, Pages::iterator, NodeIdHash> page_of_;
};

/// Stores objects in batches: each flush is one transaction. Objects that a crash leaves
/// without a version are unreachable, never wrong. Not thread-safe.
class ObjectWriter {
 public:
  ObjectWriter(const meta::Env& catalog, SeriesId series) : catalog_(catalog), series_(series) {}

  /// Children must have been put before.
  [[nodiscard]] Result<format::NodeId> put_page(const format::DirPage& page);
  [[nodiscard]] Result<format::NodeId> put_recipe(const format::Recipe& recipe);
  /// Stores what is batched.
  [[nodiscard]] Result<void> flush();
  /// Counts a version's reference to its root page, in the version's own transaction.
  [[nodiscard]] Result<void> add_root_reference(meta::WriteTxn& txn, const format::NodeId& root);

  [[nodiscard]] std::uint64_t new_objects() const { return new_objects_; }
  [[nodiscard]] std::uint64_t new_bytes() const { return new_bytes_; }

 private:
  using Key = std::pair<meta::TableIndex, format::NodeId>;
  struct Pending {
    std::string raw;
    std::vector<Key> children;
  };
  [[nodiscard]] Result<format::NodeId> put(meta::TableIndex table, std::string raw,
                                           std::vector<Key> children);
  [[nodiscard]] Result<void> add_references(meta::WriteTxn& txn, const Key& key,
                                            std::uint32_t count);

  static constexpr std::size_t kBatchBytesMax = 8U << 20;
  const meta::Env& catalog_;
  const SeriesId series_;
  std::map<Key, Pending> pending_;
  std::size_t pending_bytes_ = 0;
  std::uint64_t new_objects_ = 0;
  std::uint64_t new_bytes_ = 0;
};

}  // namespace varve::catalog
