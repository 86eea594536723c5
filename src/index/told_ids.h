// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/id_runs.h"

namespace varve::index {

/// Collects the chunks added to an index, most of them in order. Not thread-safe.
class ToldIds {
 public:
  void add(const base::IdRun& run);
  void add(const base::IdRuns& ids) {
    for (const auto& run : ids.runs()) add(run);
  }
  [[nodiscard]] base::IdRuns ids() const { return base::IdRuns::from(runs_); }
  /// Returns the chunks and empties the collection.
  [[nodiscard]] base::IdRuns take() { return base::IdRuns::from(std::exchange(runs_, {})); }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] std::size_t bytes() const { return runs_.capacity() * sizeof(base::IdRun); }

 private:
  static constexpr std::size_t kJoinAt = 4096;
  std::vector<base::IdRun> runs_;
  std::size_t join_at_ = kJoinAt;
};

}  // namespace varve::index
