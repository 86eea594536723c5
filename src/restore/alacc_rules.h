// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve::restore {

/// Sizes in areas (the unit of assembly, a container's size in the publication).
struct AlaccSizes {
  std::size_t forward = 1;  ///< Areas under assembly; the chunk cache has the rest of memory.
  std::size_t window = 1;   ///< What the look-ahead window covers.
  bool operator==(const AlaccSizes&) const = default;
};

/// What was seen while one area was assembled.
struct AlaccCycle {
  std::size_t memory = 1;  ///< Areas that forward assembly and cache have together.
  std::size_t containers_read = 0;
  bool used_cache = false;          ///< A chunk of the finished area came from the cache.
  std::size_t chunks = 0;           ///< Of the finished area.
  std::size_t duplicates = 0;       ///< Of them, that are needed again.
  std::size_t near_duplicates = 0;  ///< Of them, within one area more than forward assembly.
  std::size_t in_window = 0;        ///< Of them, that are needed again within the window.
  std::uint64_t future_bytes = 0;   ///< Of F-chunks in the cache.
  std::uint64_t past_bytes = 0;     ///< Of P-chunks in the cache.
  std::size_t past_chunks = 0;
  std::uint64_t future_added_bytes = 0;  ///< That became F-chunks in this cycle.
  std::uint64_t area_bytes = 0;
};

/// The rule that acted on a cycle.
enum class AlaccRule : std::uint8_t {
  kForwardGrows,
  kCacheGrows,
  kCacheShrinks,
  kWindowGrows,
  kWindowShrinks,
  kNone,
};

/// Adaptation of the sizes as ALACC publishes it: FAST'18 §5.2, one action at the end of each
/// cycle. What the paper leaves open is settled so: P-chunks are "very many" when they fill
/// more than 97 % of a cache that is more than 90 % full (its table 5 keeps a cache of 95 %
/// P-chunks); "few are reused" when less than 5 % of an area's chunks are needed again in a
/// window longer than half its maximum, which is six times the memory; at least 16 duplicates
/// must be seen before their distance counts; forward assembly keeps one area at least, and
/// the window is never shorter than the memory.
class AlaccRules {
 public:
  struct Options {
    /// The window grows while F-chunks fill less of the cache.
    double fill_target = 0.2;
    /// The window does not shrink while there are P-chunks.
    bool window_waits = false;
  };

  explicit AlaccRules(const Options& options) : options_(options) {}

  static constexpr std::size_t kWindowFactor = 6;  ///< Longest window, in memories.
  [[nodiscard]] static AlaccSizes initial(std::size_t memory);

  /// The sizes from the next cycle on.
  [[nodiscard]] AlaccSizes next(const AlaccSizes& sizes, const AlaccCycle& cycle);
  /// Which rule the last next() applied.
  [[nodiscard]] AlaccRule rule() const { return rule_; }

 private:
  [[nodiscard]] bool forward_is_better(const AlaccSizes& sizes, const AlaccCycle& cycle);

  const Options options_;
  std::size_t effective_cycles_ = 0;  // In a row, that two reads were enough for.
  AlaccRule rule_ = AlaccRule::kNone;
};

}  // namespace varve::restore
