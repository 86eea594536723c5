// SPDX-License-Identifier: Apache-2.0
// The neighbours of recently found chunks: the next lookups often want them (Zhu et al., FAST'08
// §4.2).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "index/tag_table.h"
#include "varve/types.h"

namespace varve::index {

/// Decides how many chunks after a found chunk to keep. Not thread-safe.
class LookAhead {
 public:
  /// Begins at a found chunk. The look-ahead doubles while chunks are looked up in the order of
  /// ids, and otherwise returns to the minimum.
  void begin(ChunkId found) {
    ahead_ = found == end_ ? std::min(2 * ahead_, kAheadMax) : kAheadMin;
    first_ = found;
    end_ = found.plus(1);
  }
  /// Returns whether to keep a chunk stored beside the found chunk. Calls must be in the order of
  /// ids.
  [[nodiscard]] bool takes(ChunkId other) {
    if (other < first_ || other.value - first_.value >= ahead_) return false;
    end_ = other.plus(1);
    return true;
  }

 private:
  static constexpr std::uint64_t kAheadMin = 64;
  static constexpr std::uint64_t kAheadMax = 4096;
  std::uint64_t ahead_ = 0;
  ChunkId first_;
  ChunkId end_;  // Chunk after the last kept chunk.
};

/// Keeps entries within a budget. Not thread-safe.
class BesideCache {
 public:
  explicit BesideCache(std::size_t budget_bytes)
      : table_bytes_max_(std::max(budget_bytes / 2, kTableBytesMin)) {}

  /// Returns the id of an entry with this tag accepted by `accept`.
  template <typename Accept>
  [[nodiscard]] std::optional<ChunkId> find(const Tag& tag, Accept&& accept) const {
    if (const auto id = recent_.find(tag, accept)) return id;
    return older_.find(tag, accept);
  }
  void add(const Entry& entry) {
    if (recent_.find(entry.tag, [&](ChunkId known) { return known == entry.id(); })) return;
    if (recent_.bytes_after_put() > table_bytes_max_) {
      std::swap(recent_, older_);
      recent_.clear();
    }
    recent_.put(entry);
  }
  void clear() {
    recent_.clear();
    older_.clear();
  }
  [[nodiscard]] std::size_t bytes() const { return recent_.bytes() + older_.bytes(); }

 private:
  static constexpr std::size_t kTableBytesMin = 2048 * sizeof(Entry);
  const std::size_t table_bytes_max_;
  // A full recent table replaces the older table, whose entries are dropped.
  TagTable recent_;
  TagTable older_;
};

}  // namespace varve::index
