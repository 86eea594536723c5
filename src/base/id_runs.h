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

/// Returns whether `next` begins where `run` ends, so that one run can hold both.
[[nodiscard]] constexpr bool continues(const IdRun& run, const IdRun& next) {
  return run.first.birth() == next.first.birth() &&
         run.first.value + run.count == next.first.value && next.count <= UINT32_MAX - run.count;
}
/// Appends ids in an order of their own, which need not ascend. Joins `next` to the last run if
/// `next` continues the last run.
void append_run(std::vector<IdRun>& order, const IdRun& next);

/// An immutable set of chunk ids, as ascending, disjoint, merged runs. Several threads may read a
/// set.
class IdRuns {
 public:
  IdRuns() = default;
  /// Returns the union of the runs, which may be in any order and overlap.
  static IdRuns from(std::vector<IdRun> runs);

  [[nodiscard]] const std::vector<IdRun>& runs() const { return runs_; }
  [[nodiscard]] std::uint64_t size() const { return before_.empty() ? 0 : total_; }
  [[nodiscard]] bool contains(ChunkId id) const { return rank(id).has_value(); }
  /// Returns whether any id of `run` is in the set. `run` must not be empty.
  [[nodiscard]] bool overlaps(const IdRun& run) const;
  /// Returns the position of `id` in ascending order, or nullopt if the set lacks `id`.
  [[nodiscard]] std::optional<std::uint64_t> rank(ChunkId id) const;
  /// Returns the number of ids below `value`.
  [[nodiscard]] std::uint64_t count_below(std::uint64_t value) const;
  /// Returns the id at position `rank`, which must be below size().
  [[nodiscard]] ChunkId select(std::uint64_t rank) const;

  [[nodiscard]] IdRuns unite(const IdRuns& other) const;
  /// Skips runs of `other` between two runs of the set by halving, so a small set minus a large set
  /// costs little.
  [[nodiscard]] IdRuns subtract(const IdRuns& other) const;
  [[nodiscard]] IdRuns intersect(const IdRuns& other) const;
  bool operator==(const IdRuns& other) const { return runs_ == other.runs_; }

  /// Encode and decode varints: the number of runs, then for each run the gap from the previous
  /// run's end and the count.
  void encode(std::string& out) const;
  [[nodiscard]] static Result<IdRuns> decode(std::string_view bytes);

 private:
  void index();
  std::vector<IdRun> runs_;
  std::vector<std::uint64_t> before_;  // before_[i]: ids in the runs before run i.
  std::uint64_t total_ = 0;
};

}  // namespace varve::base
