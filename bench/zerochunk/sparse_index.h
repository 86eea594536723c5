// SPDX-License-Identifier: Apache-2.0
// Sparse Indexing (Lillibridge et al., FAST'09), which Zero-Chunk compares itself with. For the
// bench only: it keeps the manifests in memory and counts what it would read and write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "index/tag_table.h"
#include "varve/types.h"

namespace varve::bench {

/// Deduplicates segments against the few stored segments that share the most hooks with them.
class SparseIndex {
 public:
  static constexpr std::size_t kSegmentBytes = 5U << 20;  // As the authors of Zero-Chunk set it.
  static constexpr std::size_t kChampionsMax = 10;
  static constexpr std::size_t kManifestsOfHook = 5;
  static constexpr std::size_t kCachedMax = 10;  // Manifests.
  static constexpr std::size_t kEntryBytes = 28;

  explicit SparseIndex(std::uint32_t hook_bits) : mask_((std::uint64_t{1} << hook_bits) - 1) {}

  /// Returns for each chunk of a segment whether it is stored already, and stores the others.
  std::vector<bool> store(const std::vector<Fingerprint>& segment) {
    std::map<std::uint32_t, std::size_t> votes;
    std::vector<std::uint64_t> hooks;
    for (const auto& fingerprint : segment) {
      const auto key = key_of(fingerprint);
      if ((prefix_of(fingerprint) & mask_) != 0) continue;
      hooks.push_back(key);
      if (const auto found = table_.find(key); found != table_.end()) {
        for (const auto manifest : found->second) ++votes[manifest];
      }
    }
    choose(votes);
    std::vector<bool> known;
    std::unordered_set<std::uint64_t> own;
    std::vector<std::uint64_t> manifest;
    for (const auto& fingerprint : segment) {
      const auto key = key_of(fingerprint);
      const bool is_known = own.contains(key) || std::ranges::any_of(cached_, [&](auto one) {
                              return manifests_[one].contains(key);
                            });
      known.push_back(is_known);
      own.insert(key);
      ++lookups;
      hits += is_known ? 1 : 0;
    }
    const auto number = static_cast<std::uint32_t>(manifests_.size());
    bytes_written += own.size() * kEntryBytes;
    ++manifests_written;
    manifests_.push_back(std::move(own));
    for (const auto key : hooks) {
      auto& of = table_[key];
      if (!of.empty() && of.back() == number) continue;
      if (of.size() == kManifestsOfHook) of.erase(of.begin());
      of.push_back(number);
    }
    std::size_t cached = 0;
    for (const auto one : cached_) cached += manifests_[one].size() * kEntryBytes;
    cached_bytes_max = std::max<std::uint64_t>(cached_bytes_max, cached);
    return known;
  }

  /// Returns the memory of a compact table: 8 bytes a hook and 4 for each manifest, three quarters
  /// full, and 12 bytes to locate a manifest; the champions are cached_bytes_max.
  [[nodiscard]] std::uint64_t table_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [key, of] : table_) bytes += 8 + 4 * of.size();
    return bytes * 4 / 3 + manifests_.size() * 12;
  }

  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;
  std::uint64_t manifests_read = 0;
  std::uint64_t manifests_written = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t cached_bytes_max = 0;

 private:
  static std::uint64_t prefix_of(const Fingerprint& f) {
    return base::load_le<std::uint64_t>(f.data());
  }
  static std::uint64_t key_of(const Fingerprint& f) {
    return base::load_le<std::uint64_t>(f.data() + 8);
  }
  // Takes the manifest with the most votes, then the one with the most among the hooks that are
  // left; votes of all hooks are close enough to that here.
  void choose(const std::map<std::uint32_t, std::size_t>& votes) {
    std::vector<std::pair<std::size_t, std::uint32_t>> order;
    for (const auto& [manifest, count] : votes) order.emplace_back(count, manifest);
    std::ranges::sort(order, std::greater());
    if (order.size() > kChampionsMax) order.resize(kChampionsMax);
    for (const auto& [count, manifest] : order) {
      const auto found = std::ranges::find(cached_, manifest);
      if (found != cached_.end()) {
        cached_.splice(cached_.begin(), cached_, found);
        continue;
      }
      ++manifests_read;
      bytes_read += manifests_[manifest].size() * kEntryBytes;
      cached_.push_front(manifest);
    }
    while (cached_.size() > kCachedMax) cached_.pop_back();
  }

  const std::uint64_t mask_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> table_;
  std::vector<std::unordered_set<std::uint64_t>> manifests_;
  std::list<std::uint32_t> cached_;
};

}  // namespace varve::bench
