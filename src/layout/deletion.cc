// SPDX-License-Identifier: Apache-2.0
#include "layout/deletion.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "catalog/series_catalog.h"
#include "layout/dead_categories.h"

namespace varve::layout {

namespace {

using catalog::LocationRecord;

/// Returns the chunks to which any of the versions refers. Collects only the differences between
/// neighbours: they usually have most chunks in common.
Result<base::IdRuns> chunks_of(const meta::Txn& txn, SeriesId series,
                               const std::vector<VersionNumber>& numbers) {
  std::vector<base::IdRun> runs;
  base::IdRuns previous;
  for (const auto number : numbers) {
    VARVE_TRY_ASSIGN(auto chunks, catalog::version_chunks(txn, series, number));
    const auto added = chunks.subtract(previous);
    runs.insert(runs.end(), added.runs().begin(), added.runs().end());
    previous = std::move(chunks);
  }
  return base::IdRuns::from(std::move(runs));
}

/// Finds the chunks that die in a deletion, and the rest of their location runs.
class DeathCollector {
 public:
  DeathCollector(CategoryLayout& layout, const meta::Txn& txn, std::vector<LiveVersion> versions,
                 const std::vector<VersionNumber>& gone, const OpenHold& hold)
      : layout_(layout),
        txn_(txn),
        series_(layout.options().series),
        store_(layout.options().store),
        versions_(std::move(versions)),
        gone_(gone),
        hold_(hold),
        left_(versions_) {
    const std::set<VersionNumber> going(gone.begin(), gone.end());
    std::erase_if(left_,
                  [&](const LiveVersion& version) { return going.contains(version.number); });
  }

  Result<void> collect(DeletionPlan& plan) {
    DeadCategories archive(txn_, store_);
    VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn_, store_));
    for (const auto& segment : segments) {
      // An earlier deletion has already removed its dead categories.
      const auto last = newest_at_most(left_, segment.version);
      if (segment.active() || last == newest_at_most(versions_, segment.version)) continue;
      VARVE_TRY(archive.add(segment, last));
    }
    VARVE_TRY_ASSIGN(auto dead, chunks_of(txn_, series_, gone_));
    for (const auto& version : left_) {
      if (dead.size() == 0) break;
      VARVE_TRY_ASSIGN(const auto chunks, held_chunks(txn_, series_, version, hold_));
      // The open version has the highest number, so all sealed versions are subtracted by then.
      if (!version.sealed) plan.waiting = plan.waiting.unite(dead.intersect(chunks));
      dead = dead.subtract(chunks);
    }
    plan.dead = dead;
    VARVE_TRY_ASSIGN(const auto others, remove_chunks(layout_, txn_, dead, archive, plan));
    return expect_unused(others);
  }

 private:
  // Checks the chunks of a dead category left by an earlier deletion: versions outside of the
  // category's interval must not refer to the chunks.
  Result<void> expect_unused(const base::IdRuns& archived) {
    if (archived.size() == 0) return {};
    for (const auto& version : left_) {
      VARVE_TRY_ASSIGN(const auto chunks, held_chunks(txn_, series_, version, hold_));
      if (archived.intersect(chunks).size() != 0) {
        return Error(ErrorCode::kCorrupt,
                     "catalog: a version refers to archived chunks of an older version; nothing "
                     "was deleted; run `varve check`");
      }
    }
    return {};
  }

  CategoryLayout& layout_;
  const meta::Txn& txn_;
  const SeriesId series_;
  const StoreId store_;
  const std::vector<LiveVersion> versions_;
  const std::vector<VersionNumber>& gone_;
  const OpenHold& hold_;
  std::vector<LiveVersion> left_;
};

// Returns the remaining parts of a location run if only `kept` stays. Returns nullopt if the
// container's table, with the chunks' lengths, cannot be read.
std::optional<std::vector<LocationRecord>> rest_of(CategoryLayout& layout,
                                                   const LocationRecord& record,
                                                   const base::IdRuns& kept) {
  std::vector<LocationRecord> rest;
  if (kept.size() == 0) return rest;
  const auto header = layout.header(record.container);
  if (!header || record.index + std::size_t{record.count} > (*header)->chunks.size()) {
    base::log(base::LogLevel::kWarning, "deleting: a container's table cannot be read");
    return std::nullopt;
  }
  for (const auto& run : kept.runs()) {
    const auto skip = static_cast<std::uint32_t>(run.first.value - record.first.value);
    LocationRecord part{run.first, run.count, 0, record.container, record.index + skip};
    for (std::uint32_t i = 0; i < run.count; ++i) {
      part.raw_bytes += (*header)->chunks[part.index + i].raw_bytes;
    }
    rest.push_back(part);
  }
  return rest;
}

}  // namespace

Result<void> DeletionPlan::remove(const LocationRecord& record,
                                  const std::vector<LocationRecord>& rest) {
  VARVE_TRY(ledger.remove(record, rest));
  chunks += record.count;
  chunk_bytes += record.raw_bytes;
  for (const auto& part : rest) {
    chunks -= part.count;
    chunk_bytes -= part.raw_bytes;
  }
  return {};
}

Result<base::IdRuns> remove_chunks(CategoryLayout& layout, const meta::Txn& txn,
                                   const base::IdRuns& chunks, DeadCategories& categories,
                                   DeletionPlan& plan) {
  std::vector<base::IdRun> archived;
  const auto remove_all = [&](const LocationRecord& record) -> Result<void> {
    archived.push_back({record.first, record.count});
    return plan.remove(record, {});
  };
  const auto visit = [&](const LocationRecord& record) -> Result<bool> {
    if (categories.contains(record.container)) {
      categories.take(record);
      VARVE_TRY(remove_all(record));
      return true;
    }
    const auto whole = base::IdRuns::from({{record.first, record.count}});
    const auto rest = rest_of(layout, record, whole.subtract(chunks));
    if (!rest) ++plan.unread;
    if (rest) VARVE_TRY(plan.remove(record, *rest));
    return true;
  };
  VARVE_TRY(catalog::for_each_location_of(txn, layout.options().store, chunks, visit));
  VARVE_TRY_ASSIGN(const auto left, categories.rest());
  for (const auto& record : left) VARVE_TRY(remove_all(record));
  return base::IdRuns::from(std::move(archived)).subtract(chunks);
}

Result<base::IdRuns> dying_chunks(const meta::Txn& txn, SeriesId series,
                                  const std::vector<VersionNumber>& gone) {
  VARVE_TRY_ASSIGN(auto dying, chunks_of(txn, series, gone));
  const std::set<VersionNumber> going(gone.begin(), gone.end());
  VARVE_TRY_ASSIGN(const auto versions, live_versions(txn, series));
  for (const auto& version : versions) {
    if (dying.size() == 0) break;
    if (!version.sealed || going.contains(version.number)) continue;
    VARVE_TRY_ASSIGN(const auto chunks, protected_chunks(txn, series, version));
    dying = dying.subtract(chunks);
  }
  return dying;
}

Result<DeletionPlan> plan_deletion(CategoryLayout& layout, const meta::Txn& txn,
                                   const std::vector<VersionNumber>& gone, const OpenHold& hold) {
  const SeriesId series = layout.options().series;
  VARVE_TRY_ASSIGN(auto versions, live_versions(txn, series));
  DeletionPlan plan{SegmentLedger(txn, layout.options().store), 0, 0, {}, {}, 0};
  DeathCollector collector(layout, txn, std::move(versions), gone, hold);
  VARVE_TRY(collector.collect(plan));
  VARVE_TRY(plan.ledger.finish());
  return plan;
}

}  // namespace varve::layout
