// SPDX-License-Identifier: Apache-2.0
// A repository whose only series stores its versions in the pool, with the measurements of
// bench-cma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "avar/series_kinds.h"
#include "cma/pool_content.h"
#include "cma/process_io.h"
#include "varve/rewrite.h"

namespace varve::bench {

/// A deletion by the product.
struct PoolDeletionCost {
  Cost all;   ///< From opening the repository to closing it.
  Cost call;  ///< The part of Repository::delete_versions().
  std::uint64_t forecast = 0;
  std::uint64_t freed = 0;       ///< Decrease of the files' sizes below pool/ and series/.
  std::uint64_t disk_freed = 0;  ///< Decrease of the disk space that they take.
  std::uint64_t moved = 0;       ///< Size of containers that did not exist before.
  std::set<Container> left;      ///< The containers that exist.
};

/// Versions are stored without compression, so that the bytes of a chunk have a place of their own.
class StoredPool {
 public:
  /// Creates the directory again. The destructor removes it.
  StoredPool(std::string directory, Rewrite rewrite);
  ~StoredPool();
  StoredPool(const StoredPool&) = delete;
  StoredPool& operator=(const StoredPool&) = delete;

  /// Stores versions of the source, the present one first.
  void store(std::size_t versions, KindSource& source);
  [[nodiscard]] std::uint64_t logical_bytes() const { return logical_bytes_; }

  /// Returns the containers and their use, from the catalog and the containers' headers.
  [[nodiscard]] PoolContent content() const;
  using Visit = std::function<void(Container container, std::span<const std::byte> data)>;
  /// Calls `visit` with the data of each container.
  void read_containers(const Visit& visit) const;

  /// Save a copy of the repository, and return to it.
  void keep();
  void go_back();
  /// Deletes versions, which count from 0. The repository is not in the page cache before.
  PoolDeletionCost remove(const std::vector<std::size_t>& versions);

 private:
  [[nodiscard]] std::string repository() const { return directory_ + "/repository"; }
  [[nodiscard]] std::string kept() const { return directory_ + "/kept"; }

  const std::string directory_;
  std::uint64_t logical_bytes_ = 0;
};

}  // namespace varve::bench
