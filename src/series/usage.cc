// SPDX-License-Identifier: Apache-2.0
// Measures versions, categories and the remaining work of arranging. Reads the catalog only, apart
// from delta_savings().
#include "series/usage.h"
#include "series/index_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "catalog/alias_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "ingest/rewrite_policy.h"
#include "layout/arranger.h"
#include "layout/window.h"
#include "series/pool_policy.h"
#include "series/version_records.h"
#include "store/folder_store.h"
#include "store/repository_names.h"
#include "store/segment_files.h"

namespace varve::series {

// Measures the version's own data: the chunks born in the version, and their containers.
Result<void> measure_version(const SeriesParts& parts, catalog::VersionRecord& record) {
  record.unique_bytes = 0;
  record.stored_bytes = 0;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  std::optional<ContainerNumber> counted;
  return catalog::for_each_location(txn, parts.store, ChunkId::make(record.number, 0),
                                    [&](const catalog::LocationRecord& at) -> Result<bool> {
                                      if (at.first.birth() != record.number) return false;
                                      record.unique_bytes += at.raw_bytes;
                                      if (counted == at.container) return true;
                                      counted = at.container;
                                      VARVE_TRY_ASSIGN(
                                          const auto container,
                                          catalog::find_container(txn, parts.store, at.container));
                                      if (container)
                                        record.stored_bytes += container->end() - container->offset;
                                      return true;
                                    });
}

Result<std::vector<CategoryInfo>> categories(const SeriesParts& parts) {
  VARVE_TRY(VersionRecords(*parts.catalog, parts.id).owner());
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  VARVE_TRY_ASSIGN(const auto versions, layout::live_versions(txn, parts.id));
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, parts.store));
  std::map<SegmentNumber, catalog::SegmentRecord> segment_of;
  for (const auto& segment : segments) segment_of[segment.segment] = segment;
  std::map<ContainerNumber, format::ContainerRecord> containers;
  VARVE_TRY(catalog::for_each_container(txn, parts.store,
                                        [&](const format::ContainerRecord& record) -> Result<bool> {
                                          containers[record.number] = record;
                                          return true;
                                        }));
  struct Held {
    std::uint64_t raw_bytes = 0;
    std::uint64_t chunks = 0;
  };
  std::map<std::pair<ContainerNumber, VersionNumber>, Held> held_of;
  VARVE_TRY(catalog::for_each_location(txn, parts.store, ChunkId{},
                                       [&](const catalog::LocationRecord& at) -> Result<bool> {
                                         auto& held = held_of[{at.container, at.first.birth()}];
                                         held.raw_bytes += at.raw_bytes;
                                         held.chunks += at.count;
                                         return true;
                                       }));
  std::map<std::pair<SegmentNumber, VersionNumber>, CategoryInfo> archived;
  std::map<VersionNumber, CategoryInfo> by_birth;
  for (const auto& [place, held] : held_of) {
    const auto holder = containers.find(place.first);
    if (holder == containers.end()) continue;
    const auto& record = holder->second;
    const auto owner = segment_of.find(record.segment);
    const bool active = owner == segment_of.end() || owner->second.active();
    auto& category = active ? by_birth[place.second] : archived[{record.segment, place.second}];
    category.birth = place.second;
    category.chunk_bytes += held.raw_bytes;
    category.chunks += held.chunks;
    // A volume's dead chunks count for the live chunks in the same container.
    category.bytes += (record.end() - record.offset) * held.raw_bytes /
                      std::max<std::uint64_t>(active ? record.raw_bytes : record.live_bytes, 1);
    if (active) continue;
    category.death = owner->second.version;
    category.file = store::segment_path(record.segment);
    category.live = layout::newest_at_most(versions, category.death) >= category.birth;
  }
  std::vector<CategoryInfo> all;
  for (auto& entry : archived) all.push_back(std::move(entry.second));
  for (auto& entry : by_birth) all.push_back(std::move(entry.second));
  return all;
}

namespace {

// Adds the frames of a container that have a prefix.
void add_delta_frames(const format::ContainerHeader& header, DeltaSavings& savings) {
  std::vector<std::size_t> roots(header.frames.size());  // First frame of the chain of each frame.
  for (std::size_t i = 0; i < header.frames.size(); ++i) {
    const auto& frame = header.frames[i];
    roots[i] = frame.prefix == 0 ? i : roots[i - frame.prefix];
    if (frame.prefix == 0) continue;
    const auto& root = header.frames[roots[i]];
    ++savings.frames;
    savings.frame_raw_bytes += frame.raw_bytes;
    savings.frame_stored_bytes += frame.stored_bytes;
    savings.frame_plain_bytes +=
        std::uint64_t{frame.raw_bytes} * root.stored_bytes / std::max(root.raw_bytes, 1U);
  }
}

}  // namespace

Result<DeltaSavings> delta_savings(const SeriesParts& parts) {
  VARVE_TRY(VersionRecords(*parts.catalog, parts.id).owner());
  DeltaSavings savings;
  std::vector<format::ContainerRecord> containers;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
    VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, parts.store));
    for (const auto& file : segments) {
      if (!is_volume(file.segment)) continue;
      savings.volume_bytes += file.bytes;
      savings.raw_bytes += file.raw_bytes;
    }
    VARVE_TRY(catalog::for_each_container(
        txn, parts.store, [&](const format::ContainerRecord& record) -> Result<bool> {
          if (is_volume(record.segment)) containers.push_back(record);
          return true;
        }));
  }
  const auto segments = store::open_store(parts.open_store, *parts.files, parts.directory());
  store::SegmentReader reader(*segments, parts.codecs->frames().keys());
  for (const auto& record : containers) {
    const auto header = reader.read_header(parts.store, record);
    if (header) {
      add_delta_frames(*header, savings);
    } else {
      ++savings.containers_left_out;
    }
  }
  return savings;
}

Result<ArrangingDebt> arranging_debt(const SeriesParts& parts) {
  VARVE_TRY(VersionRecords(*parts.catalog, parts.id).owner());
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
  VARVE_TRY_ASSIGN(const auto view,
                   layout::view_active_set(txn, parts.id, parts.store, settings, {}));
  ArrangingDebt debt;
  for (const auto* files : {&view.state.files, &view.files_aside}) {
    for (const auto& file : *files) {
      debt.active_bytes += file.raw_bytes;
      debt.dead_bytes += file.raw_bytes - file.live_bytes;
    }
  }
  VARVE_TRY_ASSIGN(const auto unused, layout::estimate_bytes(txn, parts.store, view.unused));
  debt.dead_bytes += unused;
  debt.departing_bytes = view.state.departing_bytes;
  for (const auto& entry : view.aside) {
    VARVE_TRY_ASSIGN(const auto bytes, layout::estimate_bytes(txn, parts.store, entry.second));
    debt.departing_bytes += bytes;
  }
  debt.runs = layout::count_runs(view.state.files);
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, parts.store));
  for (const auto& segment : segments) {
    if (!segment.active()) debt.volume_bytes += segment.raw_bytes;
  }
  return debt;
}

Result<PoolUsage> pool_usage(const SeriesParts& parts, VersionNumber number) {
  VARVE_TRY(VersionRecords(*parts.catalog, parts.id).owner());
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  VARVE_TRY_ASSIGN(const auto version, catalog::find_version(txn, parts.id, number));
  if (!version || version->state != VersionState::kSealed) return no_version();
  PoolUsage usage;
  VARVE_TRY_ASSIGN(usage.counts, catalog::find_rewrite_counts(txn, parts.id, number));
  VARVE_TRY_ASSIGN(const auto used, containers_used(txn, parts.id, number));
  usage.containers = used.size();
  for (const auto& use : used) usage.referenced_bytes += use.referenced_bytes;
  usage.utilisation = ingest::utilisation_histogram(used);
  return usage;
}

namespace {

// Adds the containers of a store, and the parity in its folder.
Result<void> add_store(const meta::Txn& txn, io::FileSystem& files, StoreId store,
                       const std::string& directory, RepositoryStats& stats) {
  const auto parity = directory + "/" + store::kParityFolder;
  VARVE_TRY_ASSIGN(const bool has_parity, files.exists(parity));
  if (has_parity) {
    VARVE_TRY_ASSIGN(const auto bytes, files.tree_bytes(parity));
    stats.parity_bytes += bytes;
  }
  VARVE_TRY(catalog::for_each_container(txn, store,
                                        [&](const format::ContainerRecord& record) -> Result<bool> {
                                          ++stats.containers;
                                          stats.unique_bytes += record.live_bytes;
                                          stats.frame_bytes += record.data_bytes;
                                          stats.container_bytes += record.end() - record.offset;
                                          return true;
                                        }));
  return catalog::for_each_location(txn, store, ChunkId{},
                                    [&](const catalog::LocationRecord& record) -> Result<bool> {
                                      stats.chunks += record.count;
                                      return true;
                                    });
}

}  // namespace

Result<void> add_stats(const SeriesParts& parts, const meta::Txn& txn, RepositoryStats& stats) {
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, parts.id));
  for (const auto& record : records) {
    const bool sealed = record.state == VersionState::kSealed;
    stats.versions_sealed += sealed ? 1 : 0;
    stats.versions_open += sealed ? 0 : 1;
    stats.logical_bytes += sealed ? record.logical_bytes : 0;
  }
  VARVE_TRY_ASSIGN(const auto index_bytes, index_file_bytes(parts));
  stats.index_bytes += index_bytes;
  return add_store(txn, *parts.files, parts.store, parts.directory(), stats);
}

Result<void> add_pool_stats(const meta::Txn& txn, io::FileSystem& files, const std::string& folder,
                            RepositoryStats& stats) {
  VARVE_TRY_ASSIGN(const bool present, files.exists(folder));
  if (!present) return {};
  VARVE_TRY_ASSIGN(const auto names, files.list(folder));
  for (const auto& name : names) {
    if (!name.starts_with("index")) continue;
    VARVE_TRY_ASSIGN(const auto bytes, files.tree_bytes(folder + "/" + name));
    stats.index_bytes += bytes;
  }
  const auto before = stats.container_bytes;
  VARVE_TRY(add_store(txn, files, kPoolStore, folder, stats));
  stats.pool_bytes = stats.container_bytes - before;
  VARVE_TRY_ASSIGN(const auto aliases, catalog::alias_totals(txn));
  stats.pool_aliases = aliases.chunks;
  stats.pool_alias_bytes = aliases.bytes;
  VARVE_TRY_ASSIGN(const auto choice, catalog::find_pool_index(txn));
  if (choice.kind == PoolIndexKind::kExact) return {};
  VARVE_TRY_ASSIGN(const auto mark, catalog::find_post_pass(txn));
  VARVE_TRY_ASSIGN(stats.pool_new_bytes, catalog::bytes_to_compare(txn, mark));
  return {};
}

}  // namespace varve::series
