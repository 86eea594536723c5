// SPDX-License-Identifier: Apache-2.0
#include "layout/arrange_policy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace varve::layout {

namespace {

using catalog::SegmentRecord;
using catalog::SegmentRole;

std::size_t count_runs_of(const std::vector<SegmentRecord>& files, SegmentRole role) {
  std::set<VersionNumber> versions;
  for (const auto& file : files) {
    if (file.role == role) versions.insert(file.version);
  }
  return versions.size();
}

std::vector<SegmentNumber> segments_of(const std::vector<SegmentRecord>& files, SegmentRole up_to) {
  std::vector<SegmentNumber> segments;
  for (const auto& file : files) {
    if (file.role <= up_to) segments.push_back(file.segment);
  }
  return segments;
}

/// Plans to rewrite all files as one run, except the files stored by the newest version.
std::optional<RewriteJob> rewrite_all(const ActiveState& state, ChunkOrder order) {
  RewriteJob job{{}, SegmentRole::kBase, state.newest, order};
  for (const auto& file : state.files) {
    if (file.version == state.newest && file.role != SegmentRole::kMerged) continue;
    job.segments.push_back(file.segment);
  }
  if (job.segments.empty()) return std::nullopt;
  return job;
}

// MFDedup, FAST'21 §3.3: each arranging splits every active category by the newest version's use of
// the chunks, and writes both parts again.
class OriginalPolicy final : public ArrangePolicy {
 public:
  bool wants_departure(const ActiveState&) const override { return true; }
  std::optional<RewriteJob> next(const ActiveState& state) const override {
    return rewrite_all(state, ChunkOrder::kBirth);
  }
};

class BatchedPolicy final : public ArrangePolicy {
 public:
  explicit BatchedPolicy(std::uint32_t batch) : batch_(batch) {}
  bool wants_departure(const ActiveState& state) const override { return next(state).has_value(); }
  std::optional<RewriteJob> next(const ActiveState& state) const override {
    // A base with the newest version's number was begun for the version and must be finished.
    const bool begun = std::any_of(state.files.begin(), state.files.end(), [&](const auto& file) {
      return file.role == SegmentRole::kBase && file.version == state.newest;
    });
    if (!begun && state.versions_behind < batch_) return std::nullopt;
    return rewrite_all(state, ChunkOrder::kStream);
  }

 private:
  const std::uint32_t batch_;
};

// Departing chunks are copied out at once, or in an object store once they are many. When the gaps
// of all files together cost more than the gap limit, or dead space exceeds its limit, the files
// with the highest gain are written again. New runs are merged, the smallest first, so that a
// reader follows few runs.
class TieredPolicy final : public ArrangePolicy {
 public:
  TieredPolicy(std::uint32_t dead_permille, std::uint32_t fan)
      : dead_permille_(dead_permille), fan_(fan) {}

  // Before files are written again, the departing chunks leave them.
  bool wants_departure(const ActiveState& state) const override {
    const auto spare = spare_bytes(state);
    return spare == 0 || state.departing_bytes > spare || next(state).has_value();
  }

  std::optional<RewriteJob> next(const ActiveState& state) const override {
    if (merges_new_runs(state)) {
      return RewriteJob{segments_of(state.files, SegmentRole::kNew), SegmentRole::kMerged,
                        state.newest, ChunkOrder::kStream};
    }
    if (count_runs_of(state.files, SegmentRole::kMerged) >= fan_) {
      return RewriteJob{segments_of(state.files, SegmentRole::kBase), SegmentRole::kBase,
                        state.newest, ChunkOrder::kStream};
    }
    const auto gap = [&](const SegmentRecord& file) {
      const auto it = state.gap_bytes.find(file.segment);
      return it == state.gap_bytes.end() ? 0 : it->second;
    };
    if (auto job = reduce(state, gap, dead_permille_ * kGapShare / kDeadShare)) return job;
    const auto dead = [](const SegmentRecord& file) { return file.raw_bytes - file.live_bytes; };
    return reduce(state, dead, dead_permille_);
  }

 private:
  // The limit for the share of gaps, relative to the limit for dead space. With the default share
  // of dead space, the newest version is read at 0.95 of the best.
  static constexpr std::uint64_t kGapShare = 16;
  static constexpr std::uint64_t kDeadShare = 35;

  // A multiple of the fan for runs with few bytes in an object store, and the share of the spare
  // bytes that counts as few.
  static constexpr std::size_t kShortRunsFactor = 3;
  static constexpr std::uint64_t kShortRunsShare = 8;

  [[nodiscard]] bool merges_new_runs(const ActiveState& state) const {
    const auto runs = count_runs_of(state.files, SegmentRole::kNew);
    const auto spare = spare_bytes(state);
    if (runs < fan_ || spare == 0 || runs >= kShortRunsFactor * fan_) return runs >= fan_;
    std::uint64_t bytes = 0;
    for (const auto& file : state.files) {
      if (file.role == SegmentRole::kNew) bytes += file.raw_bytes;
    }
    return bytes > spare / kShortRunsShare;
  }

  // Returns 0 for a newest version with more than the spare bytes: then a share of it waits.
  static std::uint64_t spare_bytes(const ActiveState& state) {
    std::uint64_t live = 0;
    for (const auto& file : state.files) live += file.live_bytes;
    const auto newest = live - std::min(live, state.departing_bytes);
    return newest <= state.spare_bytes ? state.spare_bytes : 0;
  }

  // Returns the gain of writing a file again for each byte written. A file with slowly dying chunks
  // stays clean for long, and a file with quickly dying chunks is written again soon. For a steady
  // rate of dying, the product of dead share and age is the best index. The root of the age is
  // better where only a part of a file's chunks dies quickly.
  static double gain(const ActiveState& state, const SegmentRecord& file, std::uint64_t cost) {
    const auto next = static_cast<std::uint64_t>(state.next_container);
    const auto first = static_cast<std::uint64_t>(file.first_container);
    const std::uint64_t age = next > first ? next - first : 1;
    return static_cast<double>(cost) /
           static_cast<double>(std::max<std::uint64_t>(file.raw_bytes, 1)) *
           std::sqrt(static_cast<double>(age));
  }

  /// Plans to write files again if cost(file) of all files exceeds `permille` of their live bytes.
  template <typename Cost>
  std::optional<RewriteJob> reduce(const ActiveState& state, const Cost& cost,
                                   std::uint64_t permille) const {
    std::uint64_t live = 0;
    std::uint64_t sum = 0;
    const auto spare = spare_bytes(state);
    const auto is_enough = [&] { return sum * 1000 <= live * permille || sum <= spare; };
    std::vector<std::pair<double, const SegmentRecord*>> files;
    for (const auto& file : state.files) {
      live += file.live_bytes;
      sum += cost(file);
      files.emplace_back(gain(state, file, cost(file)), &file);
    }
    if (is_enough()) return std::nullopt;
    std::stable_sort(files.begin(), files.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    // No more than needed: a file written later has more dead chunks then.
    std::map<std::pair<SegmentRole, VersionNumber>, std::vector<const SegmentRecord*>> victims;
    for (const auto& [gained, file] : files) {
      if (is_enough()) break;
      // Files of all new runs are written as one run, so that a reader follows fewer runs.
      const bool is_new = file->role == SegmentRole::kNew;
      victims[{file->role, is_new ? VersionNumber{} : file->version}].push_back(file);
      sum -= cost(*file);
    }
    // A single run at a time, with the most victims first: the state is computed again afterwards.
    const auto largest = std::max_element(
        victims.begin(), victims.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (largest == victims.end()) return std::nullopt;
    RewriteJob job{{}, largest->first.first, VersionNumber{}, ChunkOrder::kStream};
    for (const auto* file : largest->second) {
      job.segments.push_back(file->segment);
      job.version = std::max(job.version, file->version);
    }
    return job;
  }

  const std::uint64_t dead_permille_;
  const std::uint32_t fan_;
};

}  // namespace

std::unique_ptr<ArrangePolicy> make_arrange_policy(const ArrangeSettings& settings) {
  switch (settings.policy) {
    case ArrangePolicyKind::kOriginal:
      return std::make_unique<OriginalPolicy>();
    case ArrangePolicyKind::kBatched:
      return std::make_unique<BatchedPolicy>(settings.batch);
    case ArrangePolicyKind::kTiered:
      break;
  }
  return std::make_unique<TieredPolicy>(settings.dead_permille, settings.fan);
}

std::size_t count_runs(const std::vector<catalog::SegmentRecord>& files) {
  std::set<std::pair<SegmentRole, VersionNumber>> runs;
  for (const auto& file : files) runs.emplace(file.role, file.version);
  return runs.size();
}

}  // namespace varve::layout
