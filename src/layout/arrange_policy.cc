// SPDX-License-Identifier: Apache-2.0
#include "layout/arrange_policy.h"

#include <algorithm>
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

/// Plans to rewrite all files as one run, except those that the newest version stored.
std::optional<RewriteJob> rewrite_all(const ActiveState& state, ChunkOrder order) {
  RewriteJob job{{}, SegmentRole::kBase, state.newest, order};
  for (const auto& file : state.files) {
    if (file.version == state.newest && file.role != SegmentRole::kMerged) continue;
    job.segments.push_back(file.segment);
  }
  if (job.segments.empty()) return std::nullopt;
  return job;
}

// MFDedup, FAST'21 §3.3: each arranging splits every active category by whether the newest
// version still has its chunks, and writes both parts again.
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
    // A base that carries the newest version's number was begun for it, and is to be finished.
    const bool begun = std::any_of(state.files.begin(), state.files.end(), [&](const auto& file) {
      return file.role == SegmentRole::kBase && file.version == state.newest;
    });
    if (!begun && state.versions_behind < batch_) return std::nullopt;
    return rewrite_all(state, ChunkOrder::kStream);
  }

 private:
  const std::uint32_t batch_;
};

// Departing chunks are copied out at once. The files whose dead chunks hinder the newest version's
// reader most are written again when all gaps together exceed their bound, or dead space does.
// New runs are merged, the smallest first, so that a reader follows few of them.
class TieredPolicy final : public ArrangePolicy {
 public:
  TieredPolicy(std::uint32_t dead_permille, std::uint32_t fan)
      : dead_permille_(dead_permille), fan_(fan) {}

  bool wants_departure(const ActiveState&) const override { return true; }

  std::optional<RewriteJob> next(const ActiveState& state) const override {
    if (count_runs_of(state.files, SegmentRole::kNew) >= fan_) {
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
  // The share of gaps is bounded by this part of that of dead space.
  static constexpr std::uint64_t kGapShare = 4;
  static constexpr std::uint64_t kDeadShare = 7;

  /// Plans to write files again if cost(file) of all files exceeds its share of their live bytes.
  template <typename Cost>
  std::optional<RewriteJob> reduce(const ActiveState& state, const Cost& cost,
                                   std::uint64_t permille) const {
    std::uint64_t live = 0;
    std::uint64_t sum = 0;
    for (const auto& file : state.files) {
      live += file.live_bytes;
      sum += cost(file);
    }
    if (sum * 1000 <= live * permille) return std::nullopt;
    auto files = state.files;
    const auto share = [&](const SegmentRecord& file) {
      return static_cast<double>(cost(file)) /
             static_cast<double>(std::max<std::uint64_t>(file.raw_bytes, 1));
    };
    std::sort(files.begin(), files.end(), [&](const auto& a, const auto& b) {
      return share(a) != share(b) ? share(a) > share(b) : a.segment < b.segment;
    });
    // Somewhat more than needed, so that the next version does not start it again.
    std::map<std::pair<SegmentRole, VersionNumber>, std::vector<SegmentNumber>> victims;
    for (const auto& file : files) {
      if (sum * 1250 <= live * permille) break;
      victims[{file.role, file.version}].push_back(file.segment);
      sum -= cost(file);
    }
    // One run at a time, the one with most victims first: the state is looked at again after it.
    const auto largest = std::max_element(
        victims.begin(), victims.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (largest == victims.end()) return std::nullopt;
    return RewriteJob{largest->second, largest->first.first, largest->first.second,
                      ChunkOrder::kStream};
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
