// SPDX-License-Identifier: Apache-2.0
#include "layout/arranger.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "catalog/series_catalog.h"
#include "layout/deletion.h"

namespace varve::layout {

namespace {

constexpr int kStaleMax = 8;
// A file aside becomes a volume if at most this part of it is dead; else its chunks are copied.
constexpr std::uint64_t kVolumeDeadParts = 8;

using catalog::SegmentRecord;
using catalog::SegmentRole;

/// The chunks that are located in a file.
struct FileChunks {
  base::IdRuns ids;
  std::uint64_t gap_bytes = 0;  // See ActiveState::gap_bytes.
};

/// A location run of a container.
struct Place {
  std::uint32_t index = 0;
  std::uint32_t count = 0;
};

// Returns the gaps between the runs of a container. Estimates them by its average chunk.
std::uint64_t gaps_between(const format::ContainerRecord& container, std::vector<Place>& places) {
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.index < b.index; });
  std::uint64_t bytes = 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const std::uint64_t chunks = places[i].index - (places[i - 1].index + places[i - 1].count);
    bytes += std::min(chunks * container.raw_bytes / std::max(container.chunks, 1U), kGapCostMax);
  }
  return bytes;
}

// Returns the contents of each of these files. Callers pass files of the active set, without those
// of the open version.
Result<std::map<SegmentNumber, FileChunks>> chunks_by_file(
    const meta::Txn& txn, StoreId store, const std::set<SegmentNumber>& segments) {
  struct Holder {
    format::ContainerRecord record;
    std::vector<Place> places;
  };
  std::unordered_map<ContainerNumber, Holder> holders;
  VARVE_TRY(catalog::for_each_container(txn, store,
                                        [&](const format::ContainerRecord& record) -> Result<bool> {
                                          if (segments.contains(record.segment))
                                            holders[record.number].record = record;
                                          return true;
                                        }));
  std::map<SegmentNumber, std::vector<base::IdRun>> runs;
  VARVE_TRY(catalog::for_each_location(
      txn, store, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
        const auto it = holders.find(at.container);
        if (it == holders.end()) return true;
        it->second.places.push_back({at.index, at.count});
        runs[it->second.record.segment].push_back({at.first, at.count});
        return true;
      }));
  std::map<SegmentNumber, FileChunks> chunks;
  for (auto& [segment, its] : runs) chunks[segment].ids = base::IdRuns::from(std::move(its));
  for (auto& entry : holders) {
    auto& holder = entry.second;
    const auto bytes = gaps_between(holder.record, holder.places);
    if (bytes != 0) chunks[holder.record.segment].gap_bytes += bytes;
  }
  return chunks;
}

base::IdRuns united(const std::map<SegmentNumber, FileChunks>& chunks) {
  std::vector<base::IdRun> runs;
  for (const auto& entry : chunks) {
    const auto& its = entry.second.ids.runs();
    runs.insert(runs.end(), its.begin(), its.end());
  }
  return base::IdRuns::from(std::move(runs));
}

/// The chunks of the active set that the newest version lost.
struct Leaving {
  std::map<VersionNumber, base::IdRuns> deaths;
  base::IdRuns lost;    // An open version may refer to them.
  base::IdRuns unused;  // No version refers to them.
  VersionNumber window_start{};
};

// Decides about a file aside. Returns the chunks of it that stay there.
base::IdRuns stay_aside(const SegmentRecord& file, const base::IdRuns& chunks,
                        const Leaving& leaving, ArrangeView& view) {
  if (chunks.intersect(leaving.lost).size() != 0) return chunks;
  VersionNumber death{};
  base::IdRuns most;
  for (const auto& [version, dying] : leaving.deaths) {
    auto its = chunks.intersect(dying);
    if (its.size() <= most.size()) continue;
    most = std::move(its);
    death = version;
  }
  const std::uint64_t dead = file.raw_bytes - file.live_bytes;
  if (dead * kVolumeDeadParts > file.raw_bytes) {
    // The next version may take more chunks back. After the window, the rest is copied once.
    if (death < leaving.window_start) return {};
  } else if (most.size() == chunks.size()) {
    view.settled.emplace(file.segment, death);
  }
  // Chunks of other deaths depart, and returned ones move, before the file is settled.
  return most.unite(chunks.intersect(leaving.unused));
}

}  // namespace

Result<ArrangeView> view_active_set(const meta::Txn& txn, SeriesId series, StoreId store,
                                    const ArrangeSettings& settings, const base::IdRuns& excluded) {
  ArrangeView view;
  VARVE_TRY_ASSIGN(const auto versions, live_versions(txn, series));
  std::set<VersionNumber> open;
  for (const auto& version : versions) {
    if (version.sealed) view.state.newest = version.number;
    if (!version.sealed) open.insert(version.number);
  }
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, store));
  std::set<SegmentNumber> active;
  for (const auto& segment : segments) {
    if (segment.active() && !open.contains(segment.version)) active.insert(segment.segment);
  }
  VARVE_TRY_ASSIGN(auto chunks_of, chunks_by_file(txn, store, active));
  VARVE_TRY_ASSIGN(const auto kept, window_chunks(txn, series, versions, 1, false));
  base::IdRuns rest = united(chunks_of).subtract(excluded).subtract(kept);
  Leaving leaving;
  leaving.window_start = window_start(versions, settings.window);
  for (const auto& version : versions) {
    if (version.sealed || rest.size() == 0) continue;
    VARVE_TRY_ASSIGN(const auto maybe, protected_chunks(txn, series, version));
    leaving.lost = leaving.lost.unite(rest.intersect(maybe));
  }
  for (auto it = versions.rbegin(); it != versions.rend() && rest.size() != 0; ++it) {
    if (!it->sealed) continue;
    VARVE_TRY_ASSIGN(const auto chunks, catalog::version_chunks(txn, series, it->number));
    auto dying = rest.intersect(chunks);
    if (dying.size() == 0) continue;
    rest = rest.subtract(dying);
    leaving.deaths.emplace(it->number, std::move(dying));
  }
  leaving.unused = rest.subtract(leaving.lost);
  view.unused = leaving.unused;
  base::IdRuns stay;
  for (const auto& segment : segments) {
    if (!active.contains(segment.segment)) continue;
    const auto& [chunks, gap_bytes] = chunks_of[segment.segment];
    const auto used = is_volume(segment.segment) ? chunks.intersect(kept) : base::IdRuns();
    if (!is_volume(segment.segment) || used.size() * 2 > chunks.size()) {
      view.state.files.push_back(segment);
      if (gap_bytes != 0) view.state.gap_bytes.emplace(segment.segment, gap_bytes);
      continue;
    }
    view.files_aside.push_back(segment);
    view.returned = view.returned.unite(used.subtract(excluded));
    stay = stay.unite(stay_aside(segment, chunks, leaving, view));
  }
  VersionNumber base{};
  for (const auto& file : view.state.files) {
    if (file.role == SegmentRole::kBase) base = std::max(base, file.version);
  }
  for (const auto& version : versions) {
    if (version.sealed && version.number > base) ++view.state.versions_behind;
  }
  for (const auto& [death, all] : leaving.deaths) {
    const auto dying = all.subtract(stay);
    auto wait = dying.intersect(leaving.lost);
    auto depart = dying.subtract(leaving.lost);
    if (wait.size() != 0) view.aside.emplace(death, std::move(wait));
    if (depart.size() == 0) continue;
    VARVE_TRY_ASSIGN(const auto bytes, estimate_bytes(txn, store, depart));
    view.state.departing_bytes += bytes;
    view.departing.emplace(death, std::move(depart));
  }
  return view;
}

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
    auto more = work_off(view);
    if (!more) {
      // The catalog changed between the view and the commit: look again, a few times.
      if (more.error().code() != ErrorCode::kStale || ++stale > kStaleMax) {
        return std::move(more).error();
      }
      continue;
    }
    if (!*more) return true;
    // The policy would choose a job that changes nothing again and again.
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
  if (!view.settled.empty()) VARVE_TRY(settle(view.settled));
  if (view.unused.size() != 0) VARVE_TRY(drop_unused(view.unused));
  const bool has_lost = !view.departing.empty() || !view.aside.empty() || view.returned.size() != 0;
  if (has_lost && policy_->wants_departure(view.state)) {
    VARVE_TRY(depart(view));
    return true;
  }
  const auto job = policy_->next(view.state);
  if (!job) {
    VARVE_TRY(coalesce());
    return stopped();
  }
  VARVE_TRY(rewrite(*job, view.state));
  return true;
}

// Moves the chunks that the newest version lost out of its way, and those that it took back into
// it.
Result<bool> Arranger::depart(const ArrangeView& view) {
  MoveStep kind;
  kind.role = SegmentRole::kVolume;
  kind.segment_bytes_max = ~std::uint64_t{0};  // One file per step.
  for (const auto& [death, chunks] : view.departing) {
    kind.version = death;
    VARVE_TRY_ASSIGN(const bool all, move(chunks.runs(), kind));
    if (!all) return false;
  }
  kind.role = SegmentRole::kNew;
  kind.aside = true;
  for (const auto& [death, chunks] : view.aside) {
    kind.version = death;
    VARVE_TRY_ASSIGN(const bool all, move(chunks.runs(), kind));
    if (!all) return false;
  }
  if (view.returned.size() == 0) return true;
  kind.aside = false;
  kind.version = view.state.newest;
  kind.segment_bytes_max = 0;
  const auto order = in_stream_order(view.returned, parts_.newest, [this] { return stopped(); });
  if (stopped()) return false;
  return move(order, kind);
}

// Turns files aside into volumes. Only their records change. A file that a version opened since may
// need stays.
Result<void> Arranger::settle(const std::map<SegmentNumber, VersionNumber>& files) {
  auto& layout = *parts_.layout;
  const StoreId store = layout.options().store;
  std::set<SegmentNumber> segments;
  for (const auto& entry : files) segments.insert(entry.first);
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(layout.catalog()));
  VARVE_TRY_ASSIGN(const auto chunks_of, chunks_by_file(txn, store, segments));
  for (const auto& [segment, chunks] : chunks_of) {
    const auto death = files.at(segment);
    VARVE_TRY_ASSIGN(const bool used, used_after(txn, layout.options().series, chunks.ids, death));
    VARVE_TRY_ASSIGN(auto record, catalog::find_segment(txn, store, segment));
    if (used || !record) continue;
    record->role = SegmentRole::kVolume;
    record->version = death;
    VARVE_TRY(catalog::put_segment(txn, store, *record));
  }
  return txn.commit();
}

// Frees chunks that no version uses in the end, not even the one that stored them, and chunks that
// a crash left.
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
  return layout.free(plan.ledger.cuts());
}

// A new series has no base. Its files with the most bytes, the first version's, become the base
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

Result<base::IdRuns> Arranger::chunks_in(const std::vector<SegmentNumber>& segments) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(parts_.layout->catalog()));
  VARVE_TRY_ASSIGN(const auto chunks_of,
                   chunks_by_file(txn, parts_.layout->options().store,
                                  std::set<SegmentNumber>(segments.begin(), segments.end())));
  return united(chunks_of).subtract(damaged_);
}

Result<bool> Arranger::rewrite(const RewriteJob& job, const ActiveState& state) {
  VARVE_TRY_ASSIGN(const auto chunks, chunks_in(job.segments));
  std::uint64_t active_bytes = 0;
  for (const auto& file : state.files) active_bytes += file.live_bytes;
  MoveStep kind;
  kind.role = job.role;
  kind.version = job.version;
  kind.segment_bytes_max = store::segment_bytes_for(active_bytes);
  if (job.order == ChunkOrder::kBirth) return move(chunks.runs(), kind);
  const auto order = in_stream_order(chunks, parts_.newest, [this] { return stopped(); });
  if (stopped()) return false;
  return move(order, kind);
}

Result<bool> Arranger::move(const std::vector<base::IdRun>& chunks, MoveStep kind) {
  auto& layout = *parts_.layout;
  std::size_t at = 0;
  std::uint32_t skip = 0;  // Number of chunks of chunks[at] that are done.
  while (at < chunks.size()) {
    if (stopped()) return false;
    kind.chunks.clear();
    kind.batch_bytes_max = parts_.batch_bytes_max;
    kind.shared_bytes_max = parts_.shared_bytes_max;
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
    ChunkMover mover(layout, kind);
    VARVE_TRY_ASSIGN(const auto outcome, mover.run());
    count(outcome);
    if (!outcome.damaged.empty()) damaged_ = damaged_.unite(base::IdRuns::from(outcome.damaged));
    if (parts_.after_step) {
      parts_.after_step(outcome);
      count_time(Time::kPause);
    }
  }
  return true;
}

}  // namespace varve::layout
