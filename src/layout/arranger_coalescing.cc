// SPDX-License-Identifier: Apache-2.0
// Merges small volumes.
#include <algorithm>
#include <set>
#include <utility>

#include "catalog/layout_records.h"
#include "layout/arranger.h"
#include "layout/coalescing.h"
#include "layout/delta_coalescing.h"
#include "layout/file_chunks.h"
#include "layout/version_walk.h"

namespace varve::layout {
namespace {

// Batches of other moves in a batch of a volume whose frames have prefixes. The chunks of a group
// come from volumes of many deaths: with shorter batches, most frames are read and decoded twice.
constexpr std::uint64_t kDeltaBatches = 4;

}  // namespace

// Coalescing does not change the active set, so the caller need not compute a new view.
Result<void> Arranger::coalesce() {
  auto& layout = *parts_.layout;
  const auto& options = layout.options();
  const std::uint64_t before = done_.bytes_written;
  while (!stopped()) {
    MoveStep kind;
    base::IdRuns chunks;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(layout.catalog()));
      VARVE_TRY_ASSIGN(const auto versions, recent_versions(txn, options.series, settings_.window));
      VARVE_TRY_ASSIGN(auto segments, catalog::list_segments(txn, options.store));
      std::erase_if(segments,
                    [this](const auto& file) { return coalesced_.contains(file.segment); });
      const auto job = next_coalescing(segments, versions, settings_.window, parts_.coalescing);
      if (!job) break;
      if (parts_.evicted.find) {
        VARVE_TRY_ASSIGN(const bool may_work, may_read({job->volumes.begin(), job->volumes.end()}));
        if (!may_work) break;
      }
      VARVE_TRY_ASSIGN(const auto located, chunks_in_files(layout, txn, job->volumes));
      chunks = located.subtract(damaged_);
      coalesced_.insert(job->volumes.begin(), job->volumes.end());
      kind.version = job->death;
    }
    kind.role = catalog::SegmentRole::kVolume;
    kind.coalesces = true;
    kind.segment_bytes_max = parts_.coalescing.stored_bytes_max;
    VARVE_TRY(move(chunks.runs(), kind));
  }
  if (metrics_ != nullptr) metrics_->coalesced_bytes.add(done_.bytes_written - before);
  return {};
}

Result<void> Arranger::coalesce_with_prefixes() {
  auto& layout = *parts_.layout;
  const auto& options = layout.options();
  const std::uint64_t before = done_.bytes_written;
  MoveStep kind;
  kind.role = catalog::SegmentRole::kVolume;
  kind.coalesces = true;
  kind.segment_bytes_max = parts_.coalescing.delta_volume_bytes_max;
  while (!stopped()) {
    std::vector<base::IdRuns> parts;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(layout.catalog()));
      VARVE_TRY_ASSIGN(const auto versions, recent_versions(txn, options.series, settings_.window));
      VARVE_TRY_ASSIGN(auto segments, catalog::list_segments(txn, options.store));
      std::erase_if(segments,
                    [this](const auto& file) { return coalesced_.contains(file.segment); });
      const auto job = next_delta_job(segments, versions, settings_.window, parts_.coalescing);
      if (!job) break;
      std::set<SegmentNumber> files;
      for (const auto& volumes : job->volumes) files.insert(volumes.begin(), volumes.end());
      if (parts_.evicted.find) {
        VARVE_TRY_ASSIGN(const bool may_work, may_read(files));
        if (!may_work) break;
      }
      VARVE_TRY_ASSIGN(parts,
                       parts_of(layout, txn, *job, damaged_, parts_.coalescing.delta_part_bytes));
      coalesced_.merge(files);
      kind.version = job->death;
    }
    for (const auto& chunks : parts) {
      if (stopped()) break;
      MoveOutcome read;
      VARVE_TRY_ASSIGN(const auto plan, plan_delta_of(layout, chunks, read.bytes_read));
      count(read);
      VARVE_TRY_ASSIGN(const bool moved, move(plan, kind));
      if (!moved) break;
    }
  }
  if (metrics_ != nullptr) metrics_->coalesced_bytes.add(done_.bytes_written - before);
  return {};
}

Result<bool> Arranger::move(const DeltaPlan& plan, MoveStep kind) {
  std::size_t run = 0;
  std::uint32_t skip = 0;  // Number of chunks of plan.order[run] that are in a step.
  for (std::size_t frame = 0; frame < plan.frames.size();) {
    if (stopped()) return false;
    prepare(kind);
    kind.batch_bytes_max *= kDeltaBatches;
    kind.chunks.clear();
    kind.frames.clear();
    std::uint64_t bytes = 0;
    for (bool is_full = false; frame < plan.frames.size() && !is_full; ++frame) {
      const auto& planned = plan.frames[frame];
      kind.frames.push_back(planned);
      bytes += planned.raw_bytes;
      is_full = planned.ends_group && bytes >= parts_.step_bytes_max;
      for (std::uint32_t left = planned.chunks; left != 0;) {
        const auto& from = plan.order[run];
        const std::uint32_t count = std::min(left, from.count - skip);
        kind.chunks.push_back({from.first.plus(skip), count});
        left -= count;
        skip += count;
        if (skip == from.count) {
          ++run;
          skip = 0;
        }
      }
    }
    VARVE_TRY(move_step(kind));
  }
  return true;
}

}  // namespace varve::layout
