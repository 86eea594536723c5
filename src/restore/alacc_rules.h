// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve::restore {

/// The sizes of an engine's parts, in areas. An area is the unit of assembly; the publication uses
/// the size of a container.
struct AlaccSizes {
  std::size_t forward = 1;  ///< Areas under assembly. The chunk cache has the rest of the memory.
  std::size_t window = 1;   ///< Length of the look-ahead window.
  bool operator==(const AlaccSizes&) const = default;
};

/// Observations from the assembly of one area.
struct AlaccCycle {
  std::size_t memory = 1;  ///< Memory of forward assembly and cache together, in areas.
  std::size_t containers_read = 0;
  bool used_cache = false;          ///< Whether a chunk of the finished area came from the cache.
  std::size_t chunks = 0;           ///< Chunks of the finished area.
  std::size_t duplicates = 0;       ///< Chunks of `chunks` that are needed again.
  std::size_t near_duplicates = 0;  ///< Duplicates within one area more than forward assembly.
  std::size_t in_window = 0;        ///< Duplicates within the window.
  std::uint64_t future_bytes = 0;   ///< Bytes of the F-chunks in the cache.
  std::uint64_t past_bytes = 0;     ///< Bytes of the P-chunks in the cache.
  std::size_t past_chunks = 0;
  /// Bytes of the chunks that became F-chunks in this cycle.
  std::uint64_t future_added_bytes = 0;
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

/// Adapts the sizes by the published rules of ALACC (FAST'18 §5.2): one action at the end of each
/// cycle. We settle the points left open in the paper:
/// - P-chunks are "very many" when they fill more than 97 % of a cache that is more than 90 % full.
///   (Table 5 of the paper keeps a cache of 95 % P-chunks.)
/// - "Few are reused" means: less than 5 % of an area's chunks are needed again, in a window longer
///   than half its maximum. The maximum is six times the memory.
/// - The distance of duplicates counts only from 16 duplicates on.
/// - Forward assembly keeps at least one area, and the window is never shorter than the memory.
class AlaccRules {
 public:
  struct Options {
    /// Share of the cache: the window grows while F-chunks fill a smaller share.
    double fill_target = 0.2;
    /// Whether the window must not shrink while the cache holds P-chunks.
    bool window_waits = false;
  };

  explicit AlaccRules(const Options& options) : options_(options) {}

  static constexpr std::size_t kWindowFactor = 6;  ///< Longest window, as a multiple of the memory.
  [[nodiscard]] static AlaccSizes initial(std::size_t memory);

  /// Returns the sizes for the next cycle.
  [[nodiscard]] AlaccSizes next(const AlaccSizes& sizes, const AlaccCycle& cycle);
  /// Returns the rule applied by the last next().
  [[nodiscard]] AlaccRule rule() const { return rule_; }

 private:
  [[nodiscard]] bool forward_is_better(const AlaccSizes& sizes, const AlaccCycle& cycle);

  const Options options_;
  std::size_t effective_cycles_ = 0;  // Consecutive cycles that needed at most two reads.
  AlaccRule rule_ = AlaccRule::kNone;
};

}  // namespace varve::restore
