// SPDX-License-Identifier: Apache-2.0
// A cache of fingerprints that several streams share, by sampled miss-ratio curves or by their
// estimated temporal locality: TLE-LRU (Wu et al., TPDS'18 §5.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "index/cache_shares.h"
#include "index/estimation_interval.h"
#include "index/stream_entries.h"
#include "index/stream_estimates.h"
#include "index/tag_table.h"
#include "index/unseen.h"

namespace varve::index {

/// Chooses the stream that loses an entry of a full cache.
enum class EvictionRule : std::uint8_t {
  kShares,     ///< The least recently used entry of the streams that exceed their CacheShares.
  kLocality,   ///< A stream drawn with a probability proportional to entries / max(1, TLI).
  kPublished,  ///< A stream drawn with a probability proportional to 1 / max(1, TLI).
};

struct TleOptions {
  std::size_t entries = std::size_t{1} << 20;  ///< Shared by all streams. At least 16.
  double sample_share = 0.15;                  ///< Share of the arrivals in the samples.
  std::uint64_t seed = 0x5eed;                 ///< Start of all random draws.
  std::size_t streams_max = 256;               ///< At most 65535.
  EvictionRule rule = EvictionRule::kShares;
  bool admits_all = false;       ///< For comparisons: leaves out the admission by TLI.
  bool estimates_unseen = true;  ///< For comparisons: false counts the duplicates of the sample.
};

/// The sample of one stream, for an estimate without the cache.
struct StreamSample {
  StreamSlot slot = 0;
  std::uint64_t stream = 0;  ///< Unique among all streams of the cache so far.
  std::uint64_t arrivals = 0;
  std::uint64_t hits = 0;
  std::uint64_t all_arrivals = 0;     ///< Arrivals of all streams in the interval.
  std::vector<std::uint64_t> values;  ///< Empty with EvictionRule::kShares.
};

/// The locality of one stream in an interval.
struct StreamEstimate {
  StreamSample of;  ///< The sample without its values.
  /// Temporal locality indicator: arrivals that repeat an earlier arrival of the interval.
  double locality = 0;
  bool is_solved = true;  ///< See UnseenEstimate.
};

/// Figures of a stream.
struct TleStreamState {
  std::size_t entries = 0;
  /// Duplicates for as many arrivals as the cache has entries: the forecast TLI, or
  /// CacheShares::locality().
  double locality = 0;
  bool is_known = false;  ///< Whether there is an estimate.
  bool is_admitted = true;
  bool is_open = false;
  std::uint64_t arrivals = 0;
  std::uint64_t hits = 0;
};

/// Maps tags to ids for a fixed number of entries. Each entry belongs to the stream of its last
/// use. EvictionRule chooses the stream that loses its least recently used entry when the cache is
/// full. The draws by TLI also refuse new entries of a stream with a much lower TLI than another
/// stream. docs/decisions/173 compares the rules.
///
/// EstimationInterval decides when the streams are estimated again. Not thread-safe.
class TleCache {
 public:
  explicit TleCache(const TleOptions& options);
  TleCache(const TleCache&) = delete;
  TleCache& operator=(const TleCache&) = delete;

  /// Adds a stream. If all slots are used, the stream that quit first is removed, and slot 0 takes
  /// over its entries. If no stream has quit, returns slot 0; streams may share slot 0.
  [[nodiscard]] StreamSlot join();
  /// Resumes a stream that quit, with its entries and estimates.
  void resume(StreamSlot slot);
  /// Keeps the entries and the estimates of the stream, until join() needs the slot.
  void quit(StreamSlot slot);
  /// Returns whether the slot has a stream that quit.
  [[nodiscard]] bool is_waiting(StreamSlot slot) const {
    return slot < streams_.size() && streams_[slot].is_used && streams_[slot].open == 0;
  }

  [[nodiscard]] std::optional<ChunkId> find(const Tag& tag) const;
  /// Counts and samples an arrival. `is_hit`: whether a duplicate was found by any means.
  void arrive(StreamSlot slot, const Tag& tag, bool is_hit);
  /// Sets the id of the tag, and makes the entry the most recently used. Adds an entry only if the
  /// stream is admitted.
  void use(StreamSlot slot, const Entry& entry);
  void erase(const Tag& tag) { entries_.erase(tag); }
  /// Drops the entries with ids accepted by `test`.
  void erase_if(const std::function<bool(ChunkId)>& test) { entries_.erase_if(test); }

  /// Returns whether an interval has ended, the share of hits has dropped, or a stream came or
  /// went.
  [[nodiscard]] bool wants_estimates() const { return interval_.has_ended(); }
  /// Begins a new interval, and returns the samples of the last interval. Sets wants_estimates()
  /// false.
  [[nodiscard]] std::vector<StreamSample> take_samples();
  /// Estimates a stream. Needs no cache, and may take some milliseconds.
  [[nodiscard]] static StreamEstimate estimate(StreamSample sample, bool unseen = true);
  /// Applies the estimates of an interval.
  void apply(const std::vector<StreamEstimate>& estimates);
  /// Calls take_samples(), estimate() and apply().
  void update();

  [[nodiscard]] TleStreamState state(StreamSlot slot) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::uint64_t interval() const { return interval_.length(); }
  [[nodiscard]] std::uint64_t evictions() const { return evictions_; }
  [[nodiscard]] std::size_t memory_bytes() const;
  /// Memory of an entry with its part of the table, in bytes, if the number of entries is a power
  /// of two.
  static constexpr std::size_t kBytesPerEntry = 48;

 private:
  struct Stream {
    bool is_used = false;
    std::uint64_t number = 0;
    std::uint32_t open = 0;     // Number of users.
    std::uint64_t quit_at = 0;  // Order of quitting.
    Reservoir reservoir;
    std::uint64_t interval_hits = 0;
    std::uint64_t arrivals = 0;
    std::uint64_t hits = 0;
    HoltForecast forecast;
    double repeated_share = 0;  // Estimated share of arrivals repeated in the last interval.
    bool is_admitted = true;
  };

  void evict();
  [[nodiscard]] StreamSlot draw_stream();
  [[nodiscard]] StreamSlot oldest_beyond_shares() const;
  [[nodiscard]] bool uses_shares() const { return options_.rule == EvictionRule::kShares; }
  [[nodiscard]] double weight_of(StreamSlot slot) const;
  void admit();
  [[nodiscard]] std::size_t sample_size(const Stream& stream, std::uint64_t last_arrivals,
                                        std::uint64_t all_arrivals) const;
  [[nodiscard]] std::size_t open_streams() const;

  const TleOptions options_;
  SeededRandom random_;
  StreamEntries entries_;
  std::vector<Stream> streams_;
  std::uint64_t joins_ = 0;
  std::uint64_t quits_ = 0;
  std::uint64_t evictions_ = 0;
  double mean_locality_ = 0;  // Mean of streams with an estimate; stands for streams without.
  EstimationInterval interval_;
  CacheShares shares_;
};

}  // namespace varve::index
