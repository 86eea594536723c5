// SPDX-License-Identifier: Apache-2.0
// When arranging may download evicted data. docs/decisions/112.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "remote/evicted_files.h"
#include "series/eviction_rules.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::repo {

/// Versions after which arranging downloads evicted data.
inline constexpr std::uint32_t kVersionsAtOnce = 8;

/// The rule for the writer's folder of a repository in an object store: while the active set of a
/// series exceeds the folder's cache limit, arranging that needs evicted files waits for
/// kVersionsAtOnce versions, or until arranging is far behind. Thread-safe.
class EvictedArranging final : public series::EvictionRules {
 public:
  /// `is_far_behind` tells whether a series has more work left than a seal may add to.
  /// Lifetime: `files` outlives the object.
  EvictedArranging(remote::EvictedFiles& files, std::function<bool(SeriesId)> is_far_behind)
      : files_(files), is_far_behind_(std::move(is_far_behind)) {}

  [[nodiscard]] Result<bool> is_evicted(const std::string& path) override;
  [[nodiscard]] std::uint64_t bytes_at_once() const override;
  [[nodiscard]] bool may_download(SeriesId series, VersionNumber newest,
                                  std::uint64_t active_bytes) override;
  void arranged(SeriesId series, VersionNumber newest, std::uint64_t active_bytes) override;

  /// Returns whether a series has waiting work.
  [[nodiscard]] bool waits(SeriesId series);

 private:
  remote::EvictedFiles& files_;
  const std::function<bool(SeriesId)> is_far_behind_;
  std::mutex mutex_;  // Innermost. Guards waiting_.
  std::set<SeriesId> waiting_;
};

}  // namespace varve::repo
