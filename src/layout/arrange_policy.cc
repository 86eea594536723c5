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

// Departing chunks are copied out at once. New runs are merged by levels, which bounds how many
// runs a reader has to follow; the files with the largest dead share are written again, within
// their run, when the dead share of the whole exceeds its bound.
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
    return compact(state);
  }

 private:
  std::optional<RewriteJob> compact(const ActiveState& state) const {
    std::uint64_t total = 0;
    std::uint64_t dead = 0;
    for (const auto& file : state.files) {
      total += file.raw_bytes;
      dead += file.raw_bytes - file.live_bytes;
    }
    if (dead * 1000 <= total * dead_permille_) return std::nullopt;
    auto files = state.files;
    const auto dead_share = [](const SegmentRecord& file) {
      return static_cast<double>(file.raw_bytes - file.live_bytes) /
             static_cast<double>(std::max<std::uint64_t>(file.raw_bytes, 1));
    };
    std::sort(files.begin(), files.end(), [&](const auto& a, const auto& b) {
      return dead_share(a) != dead_share(b) ? dead_share(a) > dead_share(b) : a.segment < b.segment;
    });
    // Somewhat more than needed, so that the next version does not start it again.
    std::map<std::pair<SegmentRole, VersionNumber>, std::vector<SegmentNumber>> victims;
    for (const auto& file : files) {
      if (dead * 1250 <= total * dead_permille_) break;
      victims[{file.role, file.version}].push_back(file.segment);
      total -= file.raw_bytes - file.live_bytes;
      dead -= file.raw_bytes - file.live_bytes;
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
