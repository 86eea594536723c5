// SPDX-License-Identifier: Apache-2.0
#include "base/id_runs.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/coding.h"
#include "base/ids.h"

namespace varve::base {

namespace {
std::uint64_t end_of(const IdRun& run) { return run.first.value + run.count; }

// Appends [first, end). Joins the range to the last run if both touch or overlap inside one birth.
void append(std::vector<IdRun>& runs, std::uint64_t first, std::uint64_t end) {
  if (first >= end) return;
  if (!runs.empty() && end_of(runs.back()) >= first &&
      runs.back().first.birth() == ChunkId{first}.birth()) {
    const auto last = std::max(end_of(runs.back()), end);
    runs.back().count = static_cast<std::uint32_t>(last - runs.back().first.value);
    return;
  }
  runs.push_back({ChunkId{first}, static_cast<std::uint32_t>(end - first)});
}

// Returns the index of the first run at or after `from` ending after `at`. Doubles the steps.
std::size_t first_ending_after(const std::vector<IdRun>& runs, std::size_t from, std::uint64_t at) {
  std::size_t step = 1;
  std::size_t low = from;  // Runs before `low` end at or before `at`.
  while (low + step <= runs.size() && end_of(runs[low + step - 1]) <= at) {
    low += step;
    step *= 2;
  }
  const auto high = std::min(low + step, runs.size());
  const auto found = std::partition_point(runs.begin() + static_cast<std::ptrdiff_t>(low),
                                          runs.begin() + static_cast<std::ptrdiff_t>(high),
                                          [&](const IdRun& run) { return end_of(run) <= at; });
  return static_cast<std::size_t>(found - runs.begin());
}
}  // namespace

void append_run(std::vector<IdRun>& order, const IdRun& next) {
  if (!order.empty() && continues(order.back(), next)) {
    order.back().count += next.count;
  } else {
    order.push_back(next);
  }
}

void IdRuns::index() {
  before_.resize(runs_.size());
  total_ = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    before_[i] = total_;
    total_ += runs_[i].count;
  }
}

IdRuns IdRuns::from(std::vector<IdRun> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const IdRun& a, const IdRun& b) { return a.first < b.first; });
  IdRuns set;
  for (const auto& run : runs) append(set.runs_, run.first.value, end_of(run));
  set.index();
  return set;
}

std::optional<std::uint64_t> IdRuns::rank(ChunkId id) const {
  auto after = std::upper_bound(runs_.begin(), runs_.end(), id,
                                [](ChunkId v, const IdRun& run) { return v < run.first; });
  if (after == runs_.begin()) return std::nullopt;
  const auto i = static_cast<std::size_t>(after - runs_.begin()) - 1;
  if (id.value >= end_of(runs_[i])) return std::nullopt;
  return before_[i] + (id.value - runs_[i].first.value);
}

std::uint64_t IdRuns::count_below(std::uint64_t value) const {
  const auto after = std::partition_point(
      runs_.begin(), runs_.end(), [&](const IdRun& run) { return run.first.value < value; });
  if (after == runs_.begin()) return 0;
  const auto i = static_cast<std::size_t>(after - runs_.begin()) - 1;
  return before_[i] + std::min<std::uint64_t>(runs_[i].count, value - runs_[i].first.value);
}

bool IdRuns::overlaps(const IdRun& run) const {
  const auto after = std::upper_bound(
      runs_.begin(), runs_.end(), end_of(run) - 1,
      [](std::uint64_t last, const IdRun& other) { return last < other.first.value; });
  return after != runs_.begin() && end_of(*std::prev(after)) > run.first.value;
}

ChunkId IdRuns::select(std::uint64_t rank) const {
  VARVE_ASSERT(rank < total_);
  const auto after = std::upper_bound(before_.begin(), before_.end(), rank);
  const auto i = static_cast<std::size_t>(after - before_.begin()) - 1;
  return runs_[i].first.plus(rank - before_[i]);
}

IdRuns IdRuns::unite(const IdRuns& other) const {
  std::vector<IdRun> all = runs_;
  all.insert(all.end(), other.runs_.begin(), other.runs_.end());
  return from(std::move(all));
}

IdRuns IdRuns::subtract(const IdRuns& other) const {
  IdRuns out;
  std::size_t j = 0;
  for (const auto& run : runs_) {
    std::uint64_t at = run.first.value;
    const std::uint64_t end = end_of(run);
    j = first_ending_after(other.runs_, j, at);
    for (std::size_t k = j; k < other.runs_.size() && other.runs_[k].first.value < end; ++k) {
      append(out.runs_, at, std::max(at, other.runs_[k].first.value));
      at = std::max(at, end_of(other.runs_[k]));
    }
    append(out.runs_, at, end);
  }
  out.index();
  return out;
}

IdRuns IdRuns::intersect(const IdRuns& other) const { return subtract(subtract(other)); }

void IdRuns::encode(std::string& out) const {
  ByteWriter w(out);
  w.varint(runs_.size());
  std::uint64_t at = 0;
  for (const auto& run : runs_) {
    w.varint(run.first.value - at);
    w.varint(run.count);
    at = end_of(run);
  }
}

Result<IdRuns> IdRuns::decode(std::string_view bytes) {
  ByteReader r(bytes);
  const Error damaged(ErrorCode::kCorrupt, "a set of chunk ids is damaged");
  const std::uint64_t n = r.varint();
  if (n > r.left()) return damaged;  // A run takes at least two bytes.
  IdRuns set;
  set.runs_.reserve(n);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t gap = r.varint();
    const std::uint64_t count = r.varint();
    const std::uint64_t first = at + gap;
    if (!r.ok() || first < at || count == 0 || count > 0xffffffffU ||
        !are_chunk_ids(ChunkId{first}, count)) {
      return damaged;
    }
    // A writer joins touching runs inside one birth.
    if (i != 0 && gap == 0 && set.runs_.back().first.birth() == ChunkId{first}.birth()) {
      return damaged;
    }
    set.runs_.push_back({ChunkId{first}, static_cast<std::uint32_t>(count)});
    at = first + count;
  }
  if (!r.done()) return damaged;
  set.index();
  return set;
}

}  // namespace varve::base
