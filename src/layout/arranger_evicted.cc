// SPDX-License-Identifier: Apache-2.0
// Arranging of files that are only in an object store. docs/decisions/112.
#include <algorithm>
#include <utility>
#include <vector>

#include "layout/arranger.h"

namespace varve::layout {

using catalog::SegmentRecord;

bool Arranger::departs(const ArrangeView& view) const {
  const bool has_lost = !view.departing.empty() || !view.aside.empty() || view.returned.size() != 0;
  return has_lost && policy_->wants_departure(view.state);
}

std::set<SegmentNumber> Arranger::sources_of(const ArrangeView& view) const {
  std::set<SegmentNumber> sources;
  if (const auto job = policy_->next(view.state)) {
    sources.insert(job->segments.begin(), job->segments.end());
  }
  if (!departs(view)) return sources;
  auto moving = view.returned;
  for (const auto* const lost : {&view.departing, &view.aside}) {
    for (const auto& [death, chunks] : *lost) moving = moving.unite(chunks);
  }
  for (const auto& [segment, chunks] : view.chunks_of) {
    if (chunks.intersect(moving).size() != 0) sources.insert(segment);
  }
  return sources;
}

// A run that has begun to download does all of the work.
Result<bool> Arranger::may_read(const std::set<SegmentNumber>& files) {
  VARVE_TRY_ASSIGN(evicted_, parts_.evicted.find(files));
  if (evicted_.empty() || downloads_) return true;
  downloads_ = parts_.evicted.may_begin(active_bytes_);
  waits_ = !downloads_;
  return downloads_;
}

Result<bool> Arranger::may_work_off(const ArrangeView& view) {
  if (!parts_.evicted.find) return true;
  active_bytes_ = 0;
  for (const auto* const files : {&view.state.files, &view.files_aside}) {
    for (const auto& file : *files) active_bytes_ += file.bytes;
  }
  return may_read(sources_of(view));
}

std::vector<base::IdRuns> Arranger::groups_of(const ArrangeView& view) const {
  std::vector<std::vector<base::IdRun>> groups(1);
  std::uint64_t bytes = 0;  // Evicted bytes of the last group.
  const auto add = [&](const SegmentRecord& file) {
    const auto chunks = view.chunks_of.find(file.segment);
    if (chunks == view.chunks_of.end()) return;
    if (evicted_.contains(file.segment)) {
      if (bytes != 0 && bytes + file.bytes > parts_.evicted.group_bytes_max) {
        groups.emplace_back();
        bytes = 0;
      }
      bytes += file.bytes;
    }
    const auto& runs = chunks->second.runs();
    groups.back().insert(groups.back().end(), runs.begin(), runs.end());
  };
  for (const auto& file : view.state.files) add(file);
  for (const auto& file : view.files_aside) add(file);
  std::vector<base::IdRuns> found;
  for (auto& runs : groups) found.push_back(base::IdRuns::from(std::move(runs)));
  return found;
}

Result<bool> Arranger::depart(const std::map<VersionNumber, base::IdRuns>& lost,
                              const base::IdRuns& group, MoveStep kind) {
  for (const auto& [death, chunks] : lost) {
    kind.version = death;
    const auto its = chunks.intersect(group);
    if (its.size() == 0) continue;
    VARVE_TRY_ASSIGN(const bool all, move(its.runs(), kind));
    if (!all) return false;
  }
  return true;
}

}  // namespace varve::layout
