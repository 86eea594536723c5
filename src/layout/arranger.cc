// SPDX-License-Identifier: Apache-2.0
#include "layout/arranger.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "catalog/series_catalog.h"
#include "layout/deletion.h"

namespace varve::layout {

namespace {

constexpr int kStaleMax = 8;

using catalog::SegmentRecord;
using catalog::SegmentRole;

}  // namespace

Result<bool> Arranger::run() {
  const CategoryLayout::Exclusive exclusive(*parts_.layout,
                                            CategoryLayout::Exclusive::For::kArranging);
  counted_to_ = std::chrono::steady_clock::now();
  if (metrics_ != nullptr) metrics_->runs.add();
  auto finished = run_steps();
  count_time(Time::kWork);
  return finished;
}

void Arranger::count(const MoveOutcome& step) {
  done_.bytes_read += step.bytes_read;
  done_.bytes_written += step.bytes_written;
  done_.bytes_freed += step.bytes_freed;
  if (metrics_ == nullptr) return;
  metrics_->read_bytes.add(step.bytes_read);
  metrics_->written_bytes.add(step.bytes_written);
  metrics_->freed_bytes.add(step.bytes_freed);
  count_time(Time::kWork);
}

void Arranger::count_time(Time spent) {
  const auto now = std::chrono::steady_clock::now();
  if (metrics_ != nullptr && spent == Time::kWork) metrics_->busy_seconds.add(now - counted_to_);
  counted_to_ = now;
}

Result<bool> Arranger::run_steps() {
  int stale = 0;
  while (!stopped()) {
    const auto before = done_;
    const auto damaged_before = damaged_.size();
    ArrangeView view;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(parts_.layout->catalog()));
      VARVE_TRY_ASSIGN(view, view_active_set(txn, parts_.layout->options().series,
                                             parts_.layout->options().store, settings_, damaged_));
    }
    view.state.spare_bytes = parts_.spare_bytes;
    auto more = work_off(view);
    if (!more) {
      // The catalog changed between the view and the commit: a few retries with a new view.
      if (more.error().code() != ErrorCode::kStale || ++stale > kStaleMax) {
        return std::move(more).error();
      }
      continue;
    }
    if (!*more) return true;
    // The policy would choose a job without any effect again and again.
    if (!stopped() && before.bytes_written == done_.bytes_written &&
        before.bytes_freed == done_.bytes_freed && damaged_before == damaged_.size()) {
      return true;
    }
  }
  return false;
}

// Returns false if there was nothing to do.
Result<bool> Arranger::work_off(const ArrangeView& view) {
  VARVE_TRY(label_base(view.state));
  if (!view.settled.empty()) VARVE_TRY(settle(view));
  if (view.unused.size() != 0) VARVE_TRY(drop_unused(view.unused));
  VARVE_TRY_ASSIGN(const bool may_work, may_work_off(view));
  if (!may_work) return false;
  if (departs(view)) {
    VARVE_TRY(depart(view));
    return true;
  }
  const auto job = policy_->next(view.state);
  if (!job) {
    VARVE_TRY(uses_prefixes() ? coalesce_with_prefixes() : coalesce());
    return stopped();
  }
  VARVE_TRY(rewrite(*job, view));
  return true;
}

// Moves lost chunks out of the newest version's way, and moves returned chunks back. Each evicted
// file is downloaded once for all deaths.
Result<bool> Arranger::depart(const ArrangeView& view) {
  MoveStep kind;
  kind.segment_bytes_max = ~std::uint64_t{0};  // One file per step.
  for (const auto& group : groups_of(view)) {
    kind.role = SegmentRole::kVolume;
    kind.aside = false;
    VARVE_TRY_ASSIGN(const bool departed, depart(view.departing, group, kind));
    if (!departed) return false;
    kind.role = SegmentRole::kNew;
    kind.aside = true;
    VARVE_TRY_ASSIGN(const bool aside, depart(view.aside, group, kind));
    if (!aside) return false;
  }
  if (view.returned.size() == 0) return true;
  kind.role = SegmentRole::kNew;
  kind.aside = false;
  kind.version = view.state.newest;
  kind.segment_bytes_max = 0;
  const auto order = in_stream_order(view.returned, parts_.newest, [this] { return stopped(); });
  if (stopped()) return false;
  return move(order, kind);
}

// Turns files aside into volumes. Only their records change. A file stays if a version opened in
// the meantime may need the file.
Result<void> Arranger::settle(const ArrangeView& view) {
  auto& layout = *parts_.layout;
  const StoreId store = layout.options().store;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(layout.catalog()));
  for (const auto& [segment, death] : view.settled) {
    VARVE_TRY_ASSIGN(const bool used,
                     used_after(txn, layout.options().series, view.chunks_of.at(segment), death));
    VARVE_TRY_ASSIGN(auto record, catalog::find_segment(txn, store, segment));
    if (used || !record) continue;
    record->role = SegmentRole::kVolume;
    record->version = death;
    VARVE_TRY(catalog::put_segment(txn, store, *record));
  }
  return txn.commit();
}

// Frees chunks that no version uses in the end, not even the version that stored them, and chunks
// left by a crash.
Result<void> Arranger::drop_unused(const base::IdRuns& unused) {
  auto& layout = *parts_.layout;
  const StoreId store = layout.options().store;
  VARVE_TRY_ASSIGN(const auto snapshot, meta::ReadTxn::begin(layout.catalog()));
  DeletionPlan plan{SegmentLedger(snapshot, store), 0, 0, {}, {}};
  DeadCategories none(snapshot, store);
  VARVE_TRY(remove_chunks(layout, snapshot, unused, none, plan));
  if (plan.ledger.empty()) return {};
  VARVE_TRY(plan.ledger.finish());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(layout.catalog()));
  VARVE_TRY(plan.ledger.apply(txn));
  VARVE_TRY(txn.commit());
  MoveOutcome freed;
  freed.bytes_freed = plan.ledger.freed_bytes();
  count(freed);
  if (parts_.before_freeing) parts_.before_freeing();
  return layout.free(plan.ledger.cuts());
}

// A new series has no base. The files with the most bytes, from the first version, become the base
// without a merge.
Result<void> Arranger::label_base(const ActiveState& state) {
  const bool has_base =
      std::any_of(state.files.begin(), state.files.end(),
                  [](const SegmentRecord& file) { return file.role == SegmentRole::kBase; });
  if (has_base || state.files.empty()) return {};
  std::map<VersionNumber, std::uint64_t> bytes_of;
  for (const auto& file : state.files) bytes_of[file.version] += file.raw_bytes;
  const auto largest =
      std::max_element(bytes_of.begin(), bytes_of.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  auto& layout = *parts_.layout;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(layout.catalog()));
  for (const auto& file : state.files) {
    if (file.version != largest->first) continue;
    VARVE_TRY_ASSIGN(auto record, catalog::find_segment(txn, layout.options().store, file.segment));
    if (!record) continue;
    record->role = SegmentRole::kBase;
    VARVE_TRY(catalog::put_segment(txn, layout.options().store, *record));
  }
  return txn.commit();
}

Result<bool> Arranger::rewrite(const RewriteJob& job, const ArrangeView& view) {
  std::vector<base::IdRun> runs;
  for (const auto segment : job.segments) {
    const auto& its = view.chunks_of.at(segment).runs();
    runs.insert(runs.end(), its.begin(), its.end());
  }
  const auto chunks = base::IdRuns::from(std::move(runs));
  std::uint64_t active_bytes = 0;
  for (const auto& file : view.state.files) active_bytes += file.live_bytes;
  MoveStep kind;
  kind.role = job.role;
  kind.version = job.version;
  kind.segment_bytes_max = store::arranged_segment_bytes_for(active_bytes);
  if (job.order == ChunkOrder::kBirth) return move(chunks.runs(), kind);
  const auto order = in_stream_order(chunks, parts_.newest, [this] { return stopped(); });
  if (stopped()) return false;
  return move(order, kind);
}

void Arranger::prepare(MoveStep& step) const {
  step.series = parts_.layout->options().series;
  step.batch_bytes_max = parts_.batch_bytes_max;
  step.shared_bytes_max = parts_.shared_bytes_max;
  step.before_freeing = parts_.before_freeing;
  step.reads_ahead = !evicted_.empty();
}

Result<bool> Arranger::move(const std::vector<base::IdRun>& chunks, MoveStep kind) {
  auto& layout = *parts_.layout;
  std::size_t at = 0;
  std::uint32_t skip = 0;  // Number of chunks of chunks[at] that are done.
  while (at < chunks.size()) {
    if (stopped()) return false;
    kind.chunks.clear();
    prepare(kind);
    std::uint64_t bytes = 0;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(layout.catalog()));
      while (at < chunks.size() && bytes < parts_.step_bytes_max) {
        const ChunkId first = chunks[at].first.plus(skip);
        VARVE_TRY_ASSIGN(const auto where,
                         catalog::find_location(txn, layout.options().store, first));
        if (!where) return Error(ErrorCode::kStale, "a chunk that should move is missing");
        const auto behind = static_cast<std::uint32_t>(first.value - where->first.value);
        const std::uint32_t count = std::min(where->count - behind, chunks[at].count - skip);
        kind.chunks.push_back({first, count});
        bytes += where->raw_bytes * count / where->count;
        skip += count;
        if (skip == chunks[at].count) {
          ++at;
          skip = 0;
        }
      }
    }
    VARVE_TRY(move_step(kind));
  }
  return true;
}

Result<void> Arranger::move_step(const MoveStep& step) {
  ChunkMover mover(parts_.layout->store_parts(), step);
  VARVE_TRY_ASSIGN(const auto outcome, mover.run());
  count(outcome);
  if (!outcome.damaged.empty()) damaged_ = damaged_.unite(base::IdRuns::from(outcome.damaged));
  if (parts_.after_step) {
    parts_.after_step(outcome);
    count_time(Time::kPause);
  }
  return {};
}

}  // namespace varve::layout
