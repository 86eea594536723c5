// SPDX-License-Identifier: Apache-2.0
#include "restore/alacc_rules.h"

#include <algorithm>

namespace varve::restore {
namespace {

constexpr std::size_t kEffectiveReadsMax = 2;
constexpr std::size_t kDuplicatesMin = 16;
constexpr double kNearShare = 0.8;
constexpr double kPastShare = 0.97;
constexpr double kFullShare = 0.9;
constexpr double kFewReused = 0.05;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

AlaccSizes AlaccRules::initial(std::size_t memory) {
  return {std::max<std::size_t>(memory / 2, 1), std::max<std::size_t>(2 * memory, 1)};
}

bool AlaccRules::forward_is_better(const AlaccSizes& sizes, const AlaccCycle& cycle) {
  const bool is_effective = cycle.containers_read <= kEffectiveReadsMax && !cycle.used_cache;
  effective_cycles_ = is_effective ? effective_cycles_ + 1 : 0;
  if (sizes.forward >= cycle.memory) return false;
  return effective_cycles_ > sizes.forward ||
         (cycle.duplicates >= kDuplicatesMin &&
          share(cycle.near_duplicates, cycle.duplicates) > kNearShare);
}

AlaccSizes AlaccRules::next(const AlaccSizes& sizes, const AlaccCycle& cycle) {
  const std::size_t memory = std::max<std::size_t>(cycle.memory, 1);
  const std::size_t window_max = kWindowFactor * memory;
  const std::uint64_t cached = cycle.future_bytes + cycle.past_bytes;
  const std::uint64_t cache_bytes_max =
      (memory - std::min(sizes.forward, memory)) * cycle.area_bytes;
  AlaccSizes to = sizes;
  bool window_shrinks = false;
  if (forward_is_better(sizes, cycle)) {
    rule_ = AlaccRule::kForwardGrows;
    effective_cycles_ = 0;
    ++to.forward;
    window_shrinks = true;
  } else if (sizes.forward > 1 && ((cycle.past_chunks == 0 && cycle.future_bytes > 0) ||
                                   cycle.future_added_bytes > cycle.area_bytes)) {
    rule_ = AlaccRule::kCacheGrows;
    --to.forward;
    window_shrinks = true;
  } else if (sizes.forward < memory && share(cycle.past_bytes, cached) > kPastShare &&
             share(cached, cache_bytes_max) > kFullShare) {
    rule_ = AlaccRule::kCacheShrinks;
    ++to.forward;
    if (share(cycle.in_window, cycle.chunks) < kFewReused && sizes.window > window_max / 2) {
      window_shrinks = true;
    } else if (sizes.window < window_max) {
      to.window += std::max<std::size_t>((window_max - sizes.window) / memory, 1);
    }
  } else if (share(cycle.future_bytes, cache_bytes_max) < options_.fill_target) {
    rule_ = AlaccRule::kWindowGrows;
    ++to.window;
  } else {
    rule_ = AlaccRule::kWindowShrinks;
    window_shrinks = true;
  }
  if (window_shrinks && !(options_.window_waits && cycle.past_chunks > 0)) --to.window;
  to.forward = std::clamp<std::size_t>(to.forward, 1, memory);
  to.window = std::clamp(to.window, memory, window_max);
  return to;
}

}  // namespace varve::restore
