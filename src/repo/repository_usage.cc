// SPDX-License-Identifier: Apache-2.0
// Measures versions and categories, and saves the window of the neighbour index.
#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "layout/arranger.h"
#include "layout/window.h"
#include "repo/repository_impl.h"

namespace varve::repo {

using Exclusive = layout::CategoryLayout::Exclusive;

Result<bool> RepositoryImpl::save_window(SeriesState& memory, const catalog::VersionRecord& record,
                                         const base::IdRuns& chunks) {
  bool is_side = false;
  base::IdRuns window;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    const auto side = layout::is_side_version(txn, record.series, chunks);
    if (side) {
      is_side = *side;
    } else {
      // Damaged records of older versions must not prevent this seal.
      base::log(base::LogLevel::kError, side.error().message());
    }
    VARVE_TRY_ASSIGN(window, layout::window_after(txn, record.series, chunks, is_side));
    VARVE_TRY_ASSIGN(const auto lost, catalog::find_quarantine(txn, record.series));
    window = window.subtract(lost);
  }
  VARVE_TRY(memory.index->save(*files_, series_directory(record.series), record.series,
                               record.number, window));
  return is_side;
}

Result<std::vector<VersionUsage>> RepositoryImpl::version_usage(SeriesId series) {
  VARVE_TRY_ASSIGN(auto* memory, state(series));
  const std::lock_guard lock(memory->mutex);
  const Exclusive exclusive(*memory->layout, Exclusive::For::kDeleting);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
  const auto hold = open_hold(*memory, series, nullptr);
  VARVE_TRY_ASSIGN(const auto shared, layout::shared_chunks(txn, series, hold));
  std::vector<VersionUsage> all;
  for (const auto& record : records) {
    if (record.state != VersionState::kSealed) continue;
    VersionUsage usage;
    usage.number = record.number;
    usage.logical_bytes = record.logical_bytes;
    VARVE_TRY_ASSIGN(const auto chunks, catalog::version_chunks(txn, series, record.number));
    VARVE_TRY_ASSIGN(usage.referenced_bytes, layout::estimate_bytes(txn, series, chunks));
    VARVE_TRY_ASSIGN(const auto plan,
                     layout::plan_deletion(*memory->layout, txn, {record.number}, hold, &shared));
    std::optional<VersionNumber> snapshot;
    VARVE_TRY_ASSIGN(const auto alone, forecast(plan, {record}, snapshot));
    usage.unique_bytes = alone.freed_bytes;
    usage.shared_bytes =
        usage.referenced_bytes - std::min(usage.referenced_bytes, plan.chunk_bytes);
    VARVE_TRY_ASSIGN(const auto retention, catalog::find_retention(txn, series, record.number));
    usage.side = retention.side;
    usage.locked_until = retention.locked_until;
    VARVE_TRY_ASSIGN(const auto held, lock_of(txn, record, false));
    usage.lock_holds = held.has_value();
    const auto clone = std::find_if(records.begin(), records.end(), [&](const auto& other) {
      return other.state == VersionState::kOpen && other.base == record.number;
    });
    if (clone != records.end()) usage.base_of = clone->name;
    all.push_back(std::move(usage));
  }
  return all;
}

Result<std::vector<CategoryInfo>> RepositoryImpl::categories(SeriesId series) {
  VARVE_TRY(series_record(series));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto versions, layout::live_versions(txn, series));
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, series));
  std::map<std::uint32_t, catalog::SegmentRecord> segment_of;
  for (const auto& segment : segments) segment_of[segment.segment] = segment;
  std::map<std::pair<std::uint32_t, VersionNumber>, CategoryInfo> archived;
  std::map<std::uint32_t, store::ContainerRecord> active;
  VARVE_TRY(catalog::for_each_container(
      txn, series, [&](const store::ContainerRecord& record) -> Result<bool> {
        const auto owner = segment_of.find(record.segment);
        if (owner == segment_of.end() || owner->second.active()) {
          active[record.number] = record;
          return true;
        }
        auto& category = archived[{record.segment, record.birth}];
        category.birth = record.birth;
        category.death = owner->second.version;
        category.file = store::segment_path(record.segment);
        category.bytes += record.end() - record.offset;
        category.chunk_bytes += record.raw_bytes;
        category.chunks += record.chunks;
        category.live = layout::newest_at_most(versions, category.death) >= category.birth;
        return true;
      }));
  std::map<VersionNumber, CategoryInfo> by_birth;
  VARVE_TRY(catalog::for_each_location(
      txn, series, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
        const auto holder = active.find(at.container);
        if (holder == active.end()) return true;
        auto& category = by_birth[at.first.birth()];
        category.birth = at.first.birth();
        category.chunks += at.count;
        category.chunk_bytes += at.raw_bytes;
        const auto& record = holder->second;
        category.bytes += (record.end() - record.offset) * at.raw_bytes /
                          std::max<std::uint64_t>(record.raw_bytes, 1);
        return true;
      }));
  std::vector<CategoryInfo> all;
  for (auto& entry : archived) all.push_back(std::move(entry.second));
  for (auto& entry : by_birth) all.push_back(std::move(entry.second));
  return all;
}

Result<ArrangingDebt> RepositoryImpl::arranging_debt(SeriesId series) {
  VARVE_TRY(series_record(series));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
  VARVE_TRY_ASSIGN(const auto view, layout::view_active_set(txn, series, settings, {}));
  ArrangingDebt debt;
  for (const auto& file : view.state.files) {
    debt.active_bytes += file.raw_bytes;
    debt.dead_bytes += file.raw_bytes - file.live_bytes;
  }
  VARVE_TRY_ASSIGN(const auto unused, layout::estimate_bytes(txn, series, view.unused));
  debt.dead_bytes += unused;
  debt.departing_bytes = view.state.departing_bytes;
  debt.runs = layout::count_runs(view.state.files);
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, series));
  for (const auto& segment : segments) {
    if (!segment.active()) debt.volume_bytes += segment.raw_bytes;
  }
  return debt;
}

}  // namespace varve::repo
