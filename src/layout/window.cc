// SPDX-License-Identifier: Apache-2.0
#include "layout/window.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "layout/version_walk.h"
#include "meta/schema.h"

namespace varve::layout {

Result<std::vector<LiveVersion>> live_versions(const meta::Txn& txn, SeriesId series) {
  std::vector<LiveVersion> all;
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
  for (const auto& record : records) {
    VARVE_TRY_ASSIGN(const auto retention, catalog::find_retention(txn, series, record.number));
    all.push_back({record.number,
                   record.state == VersionState::kSealed,
                   retention.side,
                   {record.entries, record.logical_bytes}});
  }
  return all;
}

Result<base::IdRuns> protected_chunks(const meta::Txn& txn, SeriesId series,
                                      const LiveVersion& version) {
  if (!version.sealed) {
    VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kVersionChunks,
                                               meta::version_key(series, version.number)));
    if (!value) return base::IdRuns();
  }
  return catalog::version_chunks(txn, series, version.number);
}

Result<base::IdRuns> held_chunks(const meta::Txn& txn, SeriesId series, const LiveVersion& version,
                                 const OpenHold& hold) {
  VARVE_TRY_ASSIGN(auto chunks, protected_chunks(txn, series, version));
  const bool known = hold.number != VersionNumber{} && hold.number == version.number;
  return !version.sealed && known ? chunks.intersect(hold.chunks) : std::move(chunks);
}

Result<bool> used_after(const meta::Txn& txn, SeriesId series, const base::IdRuns& chunks,
                        VersionNumber death) {
  VersionWalk walk(txn, series);
  while (true) {
    VARVE_TRY_ASSIGN(const auto version, walk.next());
    if (!version || version->number <= death) return false;
    VARVE_TRY_ASSIGN(const auto its, protected_chunks(txn, series, *version));
    if (chunks.intersect(its).size() != 0) return true;
  }
}

VersionNumber window_start(const std::vector<LiveVersion>& versions, std::uint32_t window) {
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->sealed && !it->side && --window == 0) return it->number;
  }
  return VersionNumber{};
}

VersionNumber newest_at_most(const std::vector<LiveVersion>& versions, VersionNumber number) {
  const auto after = std::upper_bound(
      versions.begin(), versions.end(), number,
      [](VersionNumber wanted, const LiveVersion& version) { return wanted < version.number; });
  return after == versions.begin() ? VersionNumber{} : std::prev(after)->number;
}

Result<base::IdRuns> window_chunks(const meta::Txn& txn, SeriesId series,
                                   const std::vector<LiveVersion>& versions, std::uint32_t window,
                                   bool tolerant) {
  const auto start = window_start(versions, window);
  base::IdRuns chunks;
  for (const auto& version : versions) {
    if (!version.sealed || version.number < start) continue;
    auto its = catalog::version_chunks(txn, series, version.number);
    if (its) {
      chunks = chunks.size() == 0 ? std::move(*its) : chunks.unite(*its);
    } else if (tolerant) {
      base::log(base::LogLevel::kError, its.error().message());
    } else {
      return std::move(its).error();
    }
  }
  return chunks;
}

namespace {

// Makes main versions of the whole side versions. `sealed` ascend. Returns the changed versions.
Result<std::vector<VersionNumber>> count_whole_versions(meta::WriteTxn& txn, SeriesId series,
                                                        std::vector<LiveVersion>& sealed) {
  std::vector<VersionNumber> changed;
  std::optional<base::TreeSize> main;
  for (auto& version : sealed) {
    const bool is_whole = version.size.names != 0 && (!main || !is_partial(version.size, *main));
    if (version.side && is_whole) {
      VARVE_TRY_ASSIGN(auto retention, catalog::find_retention(txn, series, version.number));
      version.side = retention.side = false;
      VARVE_TRY(catalog::put_retention(txn, series, version.number, retention));
      changed.push_back(version.number);
    }
    if (!version.side) main = version.size;
  }
  return changed;
}

}  // namespace

Result<std::vector<VersionNumber>> open_window(meta::WriteTxn& txn, SeriesId series, StoreId store,
                                               VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
  VARVE_TRY_ASSIGN(const auto versions, live_versions(txn, series));
  std::vector<LiveVersion> sealed;
  for (const auto& version : versions) {
    if (version.sealed) sealed.push_back(version);
  }
  VARVE_TRY_ASSIGN(auto changed, count_whole_versions(txn, series, sealed));
  VARVE_TRY_ASSIGN(const auto chunks, window_chunks(txn, series, sealed, settings.window, true));
  VARVE_TRY(catalog::put_version_chunks(txn, series, number, chunks));
  if (sealed.empty()) return changed;
  const auto start = window_start(sealed, settings.window);
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, store));
  for (auto segment : segments) {
    if (segment.active()) continue;
    const auto user = newest_at_most(sealed, segment.version);
    if (user == VersionNumber{} || user < start) continue;
    segment.role = catalog::SegmentRole::kNew;
    segment.version = user;
    VARVE_TRY(catalog::put_segment(txn, store, segment));
  }
  return changed;
}

Result<bool> is_side_version(const meta::Txn& txn, SeriesId series, StoreId store,
                             const base::TreeSize& size, const base::IdRuns& chunks) {
  if (chunks.size() == 0) return true;
  VARVE_TRY_ASSIGN(const auto versions, live_versions(txn, series));
  const LiveVersion* main = nullptr;
  const LiveVersion* last = nullptr;
  for (const auto& version : versions) {
    if (!version.sealed) continue;
    last = &version;
    if (!version.side) main = &version;
  }
  if (main == nullptr || !base::is_partial(size, main->size)) return false;
  if (last == main) return true;
  // Returns whether `shared` makes up at least half of the bytes of `of`.
  const auto bytes_of = [&](const base::IdRuns& ids) -> Result<std::uint64_t> {
    VARVE_TRY_ASSIGN(const auto own, estimate_bytes(txn, store, catalog::own_part(ids)));
    VARVE_TRY_ASSIGN(const auto pool, estimate_bytes(txn, kPoolStore, catalog::pool_part(ids)));
    return own + pool;
  };
  const auto covers = [&](const base::IdRuns& shared, const base::IdRuns& of) -> Result<bool> {
    VARVE_TRY_ASSIGN(const auto part, bytes_of(shared));
    VARVE_TRY_ASSIGN(const auto whole, bytes_of(of));
    return part * 2 >= whole;
  };
  VARVE_TRY_ASSIGN(const auto last_chunks, catalog::version_chunks(txn, series, last->number));
  const auto shared = chunks.intersect(last_chunks);
  if (shared.size() == 0) return true;
  VARVE_TRY_ASSIGN(const bool covers_last, covers(shared, last_chunks));
  VARVE_TRY_ASSIGN(const bool covered, covers(shared, chunks));
  return !(covers_last && covered);
}

Result<base::IdRuns> window_after(const meta::Txn& txn, SeriesId series, const base::IdRuns& chunks,
                                  bool side) {
  VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
  VARVE_TRY_ASSIGN(const auto versions, live_versions(txn, series));
  const std::uint32_t others = side ? settings.window : settings.window - 1;
  if (others == 0) return chunks;
  VARVE_TRY_ASSIGN(const auto window, window_chunks(txn, series, versions, others, true));
  return window.unite(chunks);
}

Result<std::uint64_t> estimate_bytes(const meta::Txn& txn, StoreId store, const base::IdRuns& ids) {
  std::uint64_t sum = 0;
  std::size_t at = 0;
  const auto& runs = ids.runs();
  VARVE_TRY(catalog::for_each_location_of(
      txn, store, ids, [&](const catalog::LocationRecord& record) -> Result<bool> {
        const std::uint64_t begin = record.first.value;
        const std::uint64_t end = begin + record.count;
        while (at < runs.size() && runs[at].first.value + runs[at].count <= begin) ++at;
        std::uint64_t wanted = 0;
        for (std::size_t i = at; i < runs.size() && runs[i].first.value < end; ++i) {
          wanted += std::min(end, runs[i].first.value + runs[i].count) -
                    std::max(begin, runs[i].first.value);
        }
        sum += wanted == record.count ? record.raw_bytes : record.raw_bytes * wanted / record.count;
        return true;
      }));
  return sum;
}

}  // namespace varve::layout
