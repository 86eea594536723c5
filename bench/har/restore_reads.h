// SPDX-License-Identifier: Apache-2.0
// Counts the containers that a restore reads with a cache of whole containers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace varve::bench {

/// Returns the number of reads with a cache that drops the container whose last use is the longest
/// ago.
inline std::size_t lru_reads(const std::vector<std::uint32_t>& containers, std::size_t cache) {
  std::list<std::uint32_t> order;  // The last used one comes first.
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> held;
  std::size_t reads = 0;
  for (const auto container : containers) {
    const auto found = held.find(container);
    if (found != held.end()) {
      order.splice(order.begin(), order, found->second);
      continue;
    }
    ++reads;
    if (held.size() == cache) {
      held.erase(order.back());
      order.pop_back();
    }
    order.push_front(container);
    held[container] = order.begin();
  }
  return reads;
}

/// Returns the number of reads with a cache that drops the container whose next use is the farthest
/// (Belady).
inline std::size_t belady_reads(const std::vector<std::uint32_t>& containers, std::size_t cache) {
  std::vector<std::size_t> next(containers.size());
  std::unordered_map<std::uint32_t, std::size_t> later;
  for (std::size_t i = containers.size(); i-- > 0;) {
    const auto found = later.find(containers[i]);
    next[i] = found == later.end() ? containers.size() : found->second;
    later[containers[i]] = i;
  }
  std::set<std::pair<std::size_t, std::uint32_t>> held;  // Next use and container.
  std::size_t reads = 0;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (held.erase({i, containers[i]}) == 0) {
      ++reads;
      if (held.size() == cache) held.erase(std::prev(held.end()));
    }
    held.emplace(next[i], containers[i]);
  }
  return reads;
}

}  // namespace varve::bench
