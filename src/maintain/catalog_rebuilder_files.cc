// SPDX-License-Identifier: Apache-2.0
// Rebuilds the records of files and containers, and drops unreachable objects.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/object_set.h"
#include "catalog/object_store.h"
#include "layout/window.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/owners.h"
#include "maintain/place_chooser.h"
#include "maintain/write_batch.h"
#include "meta/schema.h"

namespace varve::maintain {

// A container's number is given once. Files of another state, left by an interrupted copy, may
// repeat numbers.
void CatalogRebuilder::report_repeated(const ContainerScan& scan, const base::IdRuns& wanted) {
  std::vector<base::IdRun> runs;
  for (const auto& found : scan.containers) {
    for (const auto& run : found.runs) runs.push_back({run.first, run.count});
  }
  const auto needed = wanted.subtract(base::IdRuns::from(std::move(runs)));
  for (const auto& [path, found] : scan.repeated) {
    whole_ = false;
    std::vector<base::IdRun> own;
    for (const auto& run : found.runs) own.push_back({run.first, run.count});
    const auto lost = base::IdRuns::from(std::move(own)).intersect(needed);
    const auto text = fmt::format(
        "{}: the container at offset {} has the number of another container and is "
        "left out",
        path, found.record.offset);
    if (lost.size() == 0) {
      report_.notes.push_back(text + "; no version needs it");
    } else {
      problem(fmt::format("{}; it has {} chunks of versions", text, lost.size()));
    }
  }
}

Result<void> CatalogRebuilder::put_locations(SeriesId series, store::SegmentStore& store,
                                             const ContainerScan& scan) {
  report_.bytes_read += scan.bytes_read;
  report_.containers += scan.containers.size();
  for (const auto& range : scan.unread) {
    whole_ = false;
    problem(fmt::format("{}: no readable container in the {} bytes at offset {}", range.path,
                        range.bytes, range.offset));
  }
  const auto places = choose_places(codecs_, store, catalog::store_of(series), scan.containers);
  base::IdRuns wanted;
  for (const auto& [number, chunks] : chunks_of_) wanted = wanted.unite(chunks);
  report_repeated(scan, wanted);
  // A deletion has dropped a series' chunks without a referring version, so the space of the chunks
  // counts as free. If a version may need more than the known chunks, the arranger drops the chunks
  // later. Containers of the pool keep the chunks.
  const bool cuts = whole_ && open_.empty() && series != kPoolOwner;
  PlaceCutter cutter(store, codecs_.frames().keys(), catalog::store_of(series), scan);
  std::map<ContainerNumber, std::uint64_t> live_of;
  WriteBatch batch(catalog_);
  for (const auto& place : places) {
    const auto used = base::IdRuns::from({{place.first, place.count}}).intersect(wanted);
    if (whole_ && !open_.contains(place.first.birth()) && used.size() == 0) continue;
    const bool is_cut = cuts && used.size() < place.count;
    for (const auto& part : is_cut ? cutter.cut(place, used) : std::vector{place}) {
      constexpr std::size_t kRecordBytes = 64;
      VARVE_TRY_ASSIGN(auto* txn, batch.txn(kRecordBytes));
      VARVE_TRY(catalog::put_location(*txn, catalog::store_of(series), part));
      live_of[part.container] += part.raw_bytes;
    }
  }
  VARVE_TRY(batch.commit());
  return put_files(series, scan, live_of);
}

// Stores the records of container files. The role of a file follows from the file's chunks and from
// the versions using the chunks.
Result<void> CatalogRebuilder::put_files(SeriesId series, const ContainerScan& scan,
                                         const std::map<ContainerNumber, std::uint64_t>& live_of) {
  const StoreId store = catalog::store_of(series);
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto live, layout::live_versions(txn, series));
  VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
  const auto window = layout::window_start(live, settings.window);
  struct File {
    catalog::SegmentRecord record;
    std::vector<const FoundContainer*> containers;
    std::vector<base::IdRun> ids;
    VersionNumber first_birth{};
    VersionNumber last_birth{};
  };
  std::map<SegmentNumber, File> by_segment;
  ContainerNumber next_container{};
  for (const auto& found : scan.containers) {
    auto& file = by_segment[found.record.segment];
    file.containers.push_back(&found);
    next_container = std::max(next_container, number_after(found.record.number));
    for (const auto& run : found.runs) {
      const auto birth = run.first.birth();
      file.first_birth = file.ids.empty() ? birth : std::min(file.first_birth, birth);
      file.last_birth = std::max(file.last_birth, birth);
      file.ids.push_back({run.first, run.count});
    }
  }
  for (auto& [segment, file] : by_segment) {
    auto& record = file.record;
    record.segment = segment;
    record.first_container = file.containers.front()->record.number;
    std::vector<format::ContainerRecord> containers;
    for (const auto* found : file.containers) {
      auto container = found->record;
      const auto it = live_of.find(container.number);
      container.live_bytes = it == live_of.end() ? 0 : it->second;
      record.first_container = std::min(record.first_container, container.number);
      record.bytes = std::max(record.bytes, container.end());
      record.raw_bytes += container.raw_bytes;
      containers.push_back(container);
      record.live_bytes += container.live_bytes;
      ++record.containers;
    }
    // Unused: the chunks are stored elsewhere or not needed. The next use of the series removes the
    // file.
    if (record.live_bytes == 0) continue;
    for (const auto& container : containers) {
      VARVE_TRY(catalog::put_container(txn, store, container));
    }
    const auto ids = base::IdRuns::from(std::move(file.ids));
    VersionNumber user{};
    bool open_user = false;
    for (const auto& [number, chunks] : chunks_of_) {
      if (chunks.intersect(ids).size() == 0) continue;
      if (open_.contains(number)) {
        open_user = true;
      } else {
        user = std::max(user, number);
      }
    }
    record.version = user != VersionNumber{} ? user : file.last_birth;
    if (is_volume(segment)) {
      // Assumes that the window was opened just now, so an open version refers to the chunk.
      const bool in_window =
          !open_.empty() && (open_user || (user != VersionNumber{} && user >= window));
      record.role = in_window ? catalog::SegmentRole::kNew : catalog::SegmentRole::kVolume;
    } else {
      const bool of_one = file.first_birth == file.last_birth;
      record.role = of_one ? catalog::SegmentRole::kNew : catalog::SegmentRole::kMerged;
      record.version = file.last_birth;
    }
    VARVE_TRY(catalog::put_segment(txn, store, record));
  }
  VARVE_TRY(catalog::raise_counters(txn, store, {next_container, scan.next_segment}));
  return txn.commit();
}

// Drops the objects without a referring version. Manifests of deleted versions contain more objects
// than later versions use.
Result<void> CatalogRebuilder::drop_unreachable(SeriesId series) {
  catalog::ObjectReader objects(catalog_, series);
  catalog::ObjectSet live;
  for (const auto& [number, version] : versions_) {
    if (version.record->state != VersionState::kSealed) continue;
    const auto walked = catalog::collect_objects(objects, version.record->root.child, {}, live);
    if (walked) continue;
    problem(name_of(number) + ": " + walked.error().message());
    return {};
  }
  catalog::ObjectSet dead;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    const auto collect = [&](meta::TableIndex table, const std::unordered_set<std::uint64_t>& used,
                             std::unordered_set<std::uint64_t>& unused) {
      const auto visit = [&](std::string_view key, std::string_view) -> Result<bool> {
        const auto id = base::load_be64(key.substr(4));
        if (!used.contains(id)) unused.insert(id);
        return true;
      };
      return meta::for_each_prefix(txn, table, meta::series_key(series), visit);
    };
    VARVE_TRY(collect(meta::catalog::kNodes, live.pages, dead.pages));
    VARVE_TRY(collect(meta::catalog::kRecipes, live.recipes, dead.recipes));
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::erase_objects(txn, series, dead));
  return txn.commit();
}

}  // namespace varve::maintain
