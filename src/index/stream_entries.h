// SPDX-License-Identifier: Apache-2.0
// Entries found by tag, with a list by last use for each stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "index/cache_shares.h"
#include "index/tag_table.h"

namespace varve::index {

/// Maps tags to entries. Each entry belongs to one stream, and is in the list of the stream from
/// the most to the least recently used entry. Grows with the number of entries, and never shrinks.
/// Not thread-safe.
class StreamEntries {
 public:
  /// `uses_per_tick`: precision of oldest_tick(), in uses of entries. Must not be 0.
  explicit StreamEntries(std::uint64_t uses_per_tick);

  /// Adds streams without entries, up to `streams`.
  void add_streams(std::size_t streams) { lists_.resize(streams); }
  /// Returns the entry of the tag; null without one. Lifetime: until the next change.
  [[nodiscard]] const Entry* find(const Tag& tag) const;
  /// Replaces the entry of the tag, and makes the entry the most recently used of the stream that
  /// has the entry, or of `taker` if `moves` is set. Returns false without an entry of the tag.
  bool replace(const Entry& entry, StreamSlot taker, bool moves);
  /// Adds an entry as the most recently used of the stream. The tag must have no entry.
  void add(const Entry& entry, StreamSlot slot);
  void erase(const Tag& tag);
  /// Drops the entries with ids accepted by `test`.
  void erase_if(const std::function<bool(ChunkId)>& test);
  /// Drops the least recently used entry of the stream, which must have an entry.
  void drop_oldest(StreamSlot slot);
  /// Moves all entries of a stream to another stream, the most recently used last.
  void move_all(StreamSlot from, StreamSlot to);

  [[nodiscard]] std::size_t size() const { return size_; }
  /// Returns the number of entries of the stream.
  [[nodiscard]] std::size_t size_of(StreamSlot slot) const { return lists_[slot].entries; }
  /// Returns the tick of the last use of the stream's least recently used entry. The stream must
  /// have an entry. An entry that follows a pause of 65,536 ticks has a lower tick than its own.
  [[nodiscard]] std::uint64_t oldest_tick(StreamSlot slot) const {
    return lists_[slot].oldest_tick;
  }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  using Place = std::uint32_t;  // Number of a node, plus 1. 0: none.
  struct Node {
    Entry entry;
    Place newer = 0;
    Place older = 0;
    std::uint16_t stream = 0;
    std::uint16_t tick = 0;  // Lower half of the tick of the last use.
  };
  static_assert(sizeof(Node) == 40);
  static constexpr Place kBlockNodes = 1024;
  using Block = std::array<Node, kBlockNodes>;
  struct List {
    Place newest = 0;
    Place oldest = 0;
    std::size_t entries = 0;
    std::uint64_t oldest_tick = 0;
  };

  [[nodiscard]] Node& node(Place place) {
    return (*blocks_[(place - 1) / kBlockNodes])[(place - 1) % kBlockNodes];
  }
  [[nodiscard]] const Node& node(Place place) const {
    return (*blocks_[(place - 1) / kBlockNodes])[(place - 1) % kBlockNodes];
  }
  [[nodiscard]] Place new_node();
  [[nodiscard]] std::size_t home(Place place) const;
  [[nodiscard]] std::size_t place_in_table(const Tag& tag) const;
  void grow_table();
  void link(Place place, StreamSlot slot);
  void unlink(Place place);
  void remove(Place place);

  const std::uint64_t uses_per_tick_;
  std::uint64_t uses_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
  Place places_ = 0;  // Highest place ever used.
  Place free_ = 0;    // Linked by `older`.
  std::vector<Place> table_;
  std::size_t size_ = 0;
  std::vector<List> lists_;  // By slot.
};

}  // namespace varve::index
