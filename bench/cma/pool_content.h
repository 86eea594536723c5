// SPDX-License-Identifier: Apache-2.0
// The containers of a pool and the chunks in them that each version uses.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "varve/types.h"

namespace varve::bench {

using Container = std::uint32_t;

/// One bit for each chunk of a container.
using Bitmap = std::vector<bool>;
/// The chunks that one version, or a group of versions, uses.
using Marks = std::map<Container, Bitmap>;

struct PoolChunk {
  ChunkId id;
  std::uint32_t offset = 0;  ///< In the container's data.
  std::uint32_t bytes = 0;
};
using Containers = std::map<Container, std::vector<PoolChunk>>;

struct PoolContent {
  Containers containers;
  std::vector<Marks> versions;           ///< In the order of storing.
  std::vector<std::uint64_t> use_bytes;  ///< Size of each version's record in `pool_use`.
  std::uint64_t users_bytes = 0;         ///< Size of all records in `pool_users`.
  std::uint64_t page_bytes = 0;          ///< Pages of the catalog that the two tables take.
};

/// Adds the marks of `more`.
inline void unite(Marks& marks, const Marks& more) {
  for (const auto& [container, used] : more) {
    auto& bitmap = marks[container];
    bitmap.resize(used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (used[i]) bitmap[i] = true;
    }
  }
}

}  // namespace varve::bench
