// SPDX-License-Identifier: Apache-2.0
// Shares of the streams in a cache, from sampled miss-ratio curves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/recency_order.h"
#include "index/tag_table.h"

namespace varve::index {

/// Place of a stream in the cache.
using StreamSlot = std::uint32_t;

/// Divides the entries of a cache among streams. A sample of the fingerprints, chosen by their
/// hash, gives the LRU stack distances of each stream: the hits by the number of the stream's
/// entries (SHARDS; Waldspurger et al., FAST'15). The entries go to the streams where further
/// entries add the most hits (the look-ahead algorithm of Qureshi and Patt, MICRO'06).
///
/// The sample also counts the hits of one LRU list of all streams. Unless the shares have
/// significantly more hits than this list, all shares are 0. Not thread-safe.
class CacheShares {
 public:
  explicit CacheShares(std::size_t entries);

  /// Counts an arrival of the stream.
  void arrive(StreamSlot slot, const Tag& tag);
  /// Removes a stream. Slot 0 takes over the sampled fingerprints of the stream.
  void remove_stream(StreamSlot slot);
  /// Returns the number of entries that no other stream may evict.
  [[nodiscard]] std::size_t share_of(StreamSlot slot) const {
    return in_use_ && slot < streams_.size() ? entries_ * streams_[slot].units / kUnits : 0;
  }
  /// Returns the duplicates of the stream that a cache for this stream alone would find, for as
  /// many arrivals of all streams as the cache has entries.
  [[nodiscard]] double locality(StreamSlot slot) const;
  /// Returns whether the shares have more hits than one LRU list.
  [[nodiscard]] bool in_use() const { return in_use_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  using Item = RecencyOrder::Item;  // Index in sample_, plus 1.
  using Time = RecencyOrder::Time;
  static constexpr std::size_t kUnits = 64;  // Shares are multiples of entries / kUnits.
  struct Stream {
    RecencyOrder order;
    std::vector<double> hits;  // Sampled hits by distance, in units of entries.
    std::size_t units = 0;     // Share of the entries.
  };
  struct Sampled {
    std::uint64_t hash = 0;
    StreamSlot slot = 0;  // Stream of the last use.
    Time in_stream = 0;
    Time in_all = 0;
  };

  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const;
  [[nodiscard]] Item take_new_item();
  void erase(std::uint64_t hash);
  void push(Item item, StreamSlot slot);
  void remove(Item item);
  void count_hit(const Sampled& known);
  void end_interval();
  void divide();
  // Returns the sampled hits of the stream with a share of `units`.
  [[nodiscard]] static double hits_within(const Stream& stream, std::size_t units);

  const std::size_t entries_;
  const double rate_;  // Share of the fingerprints in the sample.
  const std::size_t sample_max_;
  std::vector<Sampled> sample_;
  std::vector<Item> table_;  // Open-addressed, by hash.
  std::vector<Stream> streams_;
  RecencyOrder all_;
  std::uint64_t arrivals_ = 0;  // Arrivals in this interval.
  // Sums over the intervals, older intervals with less weight.
  double intervals_ = 0;
  double hits_of_shares_ = 0;
  double hits_of_one_list_ = 0;
  bool in_use_ = false;
};

}  // namespace varve::index
