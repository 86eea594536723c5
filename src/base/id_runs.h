// SPDX-License-Identifier: Apache-2.0
// Sets of chunk ids, kept as runs: the algebra behind recipes, liveness and categories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::base {

/// `count` consecutive ids from `first`. A run stays inside one birth.
struct IdRun {
  ChunkId first;
  std::uint32_t count = 0;
  bool operator==(const IdRun&) const = default;
};

/// An immutable set of chunk ids: ascending, disjoint, merged runs. Not synchronised;
/// reading from several threads is fine.
class IdRuns {
 public:
  IdRuns() = default;
  /// Takes runs in any order, overlapping or not.
  static IdRuns from(std::vector<IdRun> runs);

  [[nodiscard]] const std::vector<IdRun>& runs() const { return runs_; }
  [[nodiscard]] std::uint64_t size() const { return before_.empty() ? 0 : total_; }
  [[nodiscard]] bool contains(ChunkId id) const { return rank(id).has_value(); }
  /// Returns true if an id of `run`, which must not be empty, is in the set.
  [[nodiscard]] bool overlaps(const IdRun& run) const;
  /// Position of `id` in ascending order, if it is in the set.
  [[nodiscard]] std::optional<std::uint64_t> rank(ChunkId id) const;
  /// The id at position `rank`, which must be below size().
  [[nodiscard]] ChunkId select(std::uint64_t rank) const;

  [[nodiscard]] IdRuns unite(const IdRuns& other) const;
  [[nodiscard]] IdRuns subtract(const IdRuns& other) const;
  [[nodiscard]] IdRuns intersect(const IdRuns& other) const;
  bool operator==(const IdRuns& other) const { return runs_ == other.runs_; }

  /// Varints: number of runs, then per run the gap from the last run's end and the count.
  void encode(std::string& out) const;
  [[nodiscard]] static Result<IdRuns> decode(std::string_view bytes);

 private:
  void index();
  std::vector<IdRun> runs_;
  std::vector<std::uint64_t> before_;  // before_[i]: ids in the runs before run i.
  std::uint64_t total_ = 0;
};

}  // namespace varve::base
