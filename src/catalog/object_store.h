// SPDX-License-Identifier: Apache-2.0
// Directory pages and long recipes: immutable objects, shared between neighbouring versions.
//
// An object that the parent version has at the same place is not stored again, so an
// unchanged directory costs nothing. As with chunks, only the neighbour is asked: each object
// lives for an interval of versions. Keys ascend with the order of storing, which keeps a
// version's objects together and the catalog's pages full.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/dir_node.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// An object's record of its raw bytes (docs/FORMAT.md §7), and back, verified.
[[nodiscard]] std::string encode_object(const std::string& raw);
[[nodiscard]] Result<std::string> decode_object(format::NodeId id, std::string_view record);

/// Reads one series' objects; keeps recently used pages decoded. Thread-safe.
class ObjectReader {
 public:
  ObjectReader(const meta::Env& catalog, SeriesId series) : catalog_(catalog), series_(series) {}

  /// kCorrupt if the object is missing or damaged, or refers to an object that is not older.
  [[nodiscard]] Result<std::shared_ptr<const format::DirPage>> page(format::NodeId id);
  [[nodiscard]] Result<std::shared_ptr<const format::Recipe>> recipe(format::NodeId id);

  /// An object's raw bytes, verified.
  [[nodiscard]] Result<std::string> raw(meta::TableIndex table, format::NodeId id);
  /// XXH3-64 of the raw bytes, from the record.
  [[nodiscard]] Result<std::uint64_t> checksum(meta::TableIndex table, format::NodeId id);

 private:
  static constexpr std::size_t kPagesCached = 2048;
  const meta::Env& catalog_;
  const SeriesId series_;
  std::mutex mutex_;
  using Pages = std::list<std::pair<std::uint64_t, std::shared_ptr<const format::DirPage>>>;
  Pages pages_;  // Most recently used first.
  std::unordered_map<std::uint64_t, Pages::iterator> page_of_;
};

/// The objects of one directory of the parent version: its pages and its files' recipes.
class PreviousObjects {
 public:
  PreviousObjects() = default;
  /// `root`: the directory's top page.
  [[nodiscard]] static Result<PreviousObjects> collect(ObjectReader& objects, format::NodeId root);

 private:
  friend class ObjectWriter;
  std::multimap<std::pair<meta::TableIndex, std::uint64_t>, format::NodeId> by_checksum_;
};

/// Stores a version's objects in batches: each flush is one transaction. Objects that a
/// failed seal leaves are unreachable, and overwritten by the next attempt. Not thread-safe.
class ObjectWriter {
 public:
  ObjectWriter(const meta::Env& catalog, ObjectReader& reader, SeriesId series, VersionNumber birth)
      : catalog_(catalog), reader_(reader), series_(series), birth_(birth) {}

  /// Children must have been put before.
  [[nodiscard]] Result<format::NodeId> put_page(const format::DirPage& page,
                                                const PreviousObjects& previous);
  [[nodiscard]] Result<format::NodeId> put_recipe(const format::Recipe& recipe,
                                                  const PreviousObjects& previous);
  /// Stores what is batched.
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
