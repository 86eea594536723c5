// SPDX-License-Identifier: Apache-2.0
#include "remote/change_finder.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/log.h"
#include "catalog/layout_records.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "meta/tree_changes.h"
#include "remote/object_cut.h"
#include "remote/replicator_round.h"
#include "remote/upload_check.h"
#include "store/repository_paths.h"
#include "store/segment_files.h"

namespace varve::remote {

namespace {

constexpr std::string_view kCatalogIdKey = "catalog_id";  // In the settings.
constexpr std::size_t kDeltasMax = 200;
constexpr int kLooksMax = 5;

// The changed keys of tables with records about the content of files.
struct FileKeys {
  std::set<std::pair<StoreId, SegmentNumber>> segments;
  ContainerKeys containers;
  bool series_differ = false;  // A series was added or removed.
};

// The two numbers of a key of the segments or the containers.
std::optional<std::pair<std::uint32_t, std::uint32_t>> two_numbers(std::string_view key) {
  if (key.size() != 2 * sizeof(std::uint32_t)) return std::nullopt;
  const auto both = base::load_be64(key);
  return std::pair{static_cast<std::uint32_t>(both >> 32), static_cast<std::uint32_t>(both)};
}

Result<void> note_key(const meta::ReadTxn& last, const meta::ReadTxn& now, std::size_t table,
                      std::string_view key, FileKeys& keys) {
  if (table == meta::catalog::kSeries) {
    const auto* const name = meta::catalog::kTables[table];
    VARVE_TRY_ASSIGN(const auto was, meta::find_stored(last, name, key));
    VARVE_TRY_ASSIGN(const auto is, meta::find_stored(now, name, key));
    if (was.has_value() != is.has_value()) keys.series_differ = true;
    return {};
  }
  if (table != meta::catalog::kSegments && table != meta::catalog::kContainers) return {};
  const auto numbers = two_numbers(key);
  if (!numbers) return Error(ErrorCode::kCorrupt, "the catalog has a key of a wrong length");
  const auto store = static_cast<StoreId>(numbers->first);
  if (table == meta::catalog::kSegments) {
    keys.segments.emplace(store, static_cast<SegmentNumber>(numbers->second));
  } else {
    keys.containers.emplace_back(store, static_cast<ContainerNumber>(numbers->second));
  }
  return {};
}

}  // namespace

Result<bool> ChangeFinder::take_snapshot(Round& round) {
  VARVE_TRY_ASSIGN(round.superblock, parts_.superblock());
  auto last = parts_.kept != nullptr ? parts_.kept->take() : std::optional<meta::ReadTxn>();
  std::optional<meta::ReadTxn> now;
  const auto changed = [&]() -> Result<bool> {
    std::vector<ReplicaFile> others;
    VARVE_TRY_ASSIGN(auto begun, begin_snapshot(round, others));
    now.emplace(std::move(begun));
    return compare(round, others, last ? &*last : nullptr, *now);
  }();
  if (parts_.kept == nullptr) return changed;
  parts_.kept->put_back(std::move(last), std::move(now));
  // The newest head already equals the new snapshot.
  if (changed && !*changed) parts_.kept->advance();
  return changed;
}

// Reads the other files first: labels of a later commit would not fit the snapshot.
Result<meta::ReadTxn> ChangeFinder::begin_snapshot(Round& round, std::vector<ReplicaFile>& others) {
  for (int looks = 1;; ++looks) {
    LookingRound looking;
    looking.known = [this](const std::string& path) -> Result<std::optional<FileLook>> {
      const auto found = looks_.find(path);
      if (found != looks_.end()) return std::optional(found->second);
      return state_.look(path);
    };
    std::uint64_t before = 0;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
      before = txn.id();
      VARVE_TRY_ASSIGN(others, other_files(*parts_.files, parts_.root, txn, looking));
    }
    round.report.files_read += looking.files_read;
    round.report.local_bytes += looking.bytes_read;
    for (auto& [path, look] : looking.noted) looks_[path] = look;
    VARVE_TRY_ASSIGN(auto txn, meta::ReadTxn::begin(*parts_.catalog));
    if (txn.id() == before || looks >= kLooksMax) return txn;
  }
}

// Returns whether a new head would differ.
Result<bool> ChangeFinder::compare(Round& round, const std::vector<ReplicaFile>& others,
                                   const meta::ReadTxn* last, const meta::ReadTxn& now) {
  round.commit = now.id();
  VARVE_TRY_ASSIGN(round.is_rebuilt, is_rebuilt(now));
  round.catalog_changed = head_.number == 0 || round.commit != head_.commit || round.is_rebuilt;
  if (parts_.notes != nullptr) round.changed = parts_.notes->paths(LocalNote::kChanged);
  round.is_base = head_.number == 0 || round.changed.contains(kWholeCatalog) || is_base_due();
  round.is_full = last == nullptr || last->id() != head_.commit || head_.number == 0 ||
                  round.is_rebuilt || !round.changed.empty();
  if (!round.is_full) {
    const auto told = find_changed(round, *last, now);
    if (!told) {
      base::log(base::LogLevel::kWarning,
                told.error().message() + "; the whole catalog is compared with the newest head");
    }
    round.is_full = !told || !*told;
  }
  if (round.is_full) VARVE_TRY(find_all(round, now));
  round.report.is_full = round.is_full;
  const bool others_differ = add_others(round, others);
  const bool same_files = std::ranges::all_of(round.files, [&](const ReplicaFile& file) {
    const auto known = objects_.find(file.path);
    return known != objects_.end() && bytes_of(known->second) == file.bytes;
  });
  const bool changed = round.catalog_changed || others_differ || !same_files ||
                       !round.changed.empty() || !round.removed.empty() ||
                       round.superblock != head_.superblock;
  if (!changed) return false;
  if (round.is_base) {
    round.changes = {};
    VARVE_TRY_ASSIGN(const auto records, write_catalog(now, round.changes));
    round.report.records += records;
  } else if (round.is_full && round.catalog_changed) {
    VARVE_TRY_ASSIGN(const auto known, meta::ReadTxn::begin(copy_));
    VARVE_TRY_ASSIGN(const auto records, compare_catalogs(known, now, round.changes));
    round.report.records += records;
  }
  return true;
}

Result<void> ChangeFinder::find_all(Round& round, const meta::ReadTxn& now) {
  round.removed.clear();
  round.changes = {};
  VARVE_TRY_ASSIGN(round.files, data_files(now));
  round.report.records += round.files.size();
  VARVE_TRY_ASSIGN(auto found,
                   containers_to_upload(now, round.files, round.is_rebuilt ? ObjectMap{} : objects_,
                                        round.changed, nullptr));
  round.report.records += found.records;
  round.containers = std::move(found.files);
  return {};
}

Result<bool> ChangeFinder::find_changed(Round& round, const meta::ReadTxn& last,
                                        const meta::ReadTxn& now) {
  FileKeys keys;
  {
    VARVE_TRY_ASSIGN(const auto known, meta::ReadTxn::begin(copy_));
    const auto visit = [&](std::size_t table, std::string_view key) -> Result<void> {
      ++round.report.records;
      VARVE_TRY(compare_record(known, now, static_cast<std::uint8_t>(table), key, round.changes));
      return note_key(last, now, table, key, keys);
    };
    VARVE_TRY(meta::for_each_changed_key(last, now, catalog_tables(), visit));
  }
  if (keys.series_differ) return false;
  VARVE_TRY_ASSIGN(const auto folders, store_folders(now));
  std::set<std::string> listed;
  for (const auto& [store, number] : keys.segments) {
    const auto folder = folders.find(store);
    if (folder == folders.end()) return false;
    const auto path = folder->second + "/" + store::segment_path(number);
    VARVE_TRY_ASSIGN(const auto record, catalog::find_segment(now, store, number));
    const auto known = objects_.find(path);
    const auto had = known == objects_.end() ? 0 : bytes_of(known->second);
    if (!record || record->bytes == 0) {
      if (known != objects_.end()) round.removed.insert(path);
    } else if (had != record->bytes) {
      round.files.push_back({path, record->bytes, 0});
    } else {
      continue;
    }
    listed.insert(path);
  }
  // Files with dead ends worth a copy that an earlier head could not make.
  for (const auto& path : uncut_) {
    if (!listed.contains(path)) round.files.push_back({path, bytes_of(objects_.at(path)), 0});
  }
  VARVE_TRY_ASSIGN(auto found,
                   containers_to_upload(now, round.files, objects_, {}, &keys.containers));
  round.report.records += found.records;
  round.containers = std::move(found.files);
  return true;
}

// Adds the files other than segments and volumes: all files, or only differing files. Finds missing
// files of the newest head. Returns whether any added file differs.
bool ChangeFinder::add_others(Round& round, const std::vector<ReplicaFile>& others) const {
  bool differs = false;
  std::set<std::string> present;
  for (const auto& file : others) {
    const auto known = objects_.find(file.path);
    const bool is_same = known != objects_.end() && bytes_of(known->second) == file.bytes &&
                         known->second.back().mark == file.mark;
    differs = differs || !is_same;
    if (round.is_full || !is_same) round.files.push_back(file);
    present.insert(file.path);
  }
  if (round.is_full) {
    for (const auto& file : round.files) present.insert(file.path);
    for (const auto& [path, extents] : objects_) {
      if (!present.contains(path)) round.removed.insert(path);
    }
    return differs;
  }
  for (const auto& path : others_) {
    if (!present.contains(path)) round.removed.insert(path);
  }
  return differs;
}

bool ChangeFinder::is_base_due() const {
  std::uint64_t base_bytes = 0;
  std::uint64_t delta_bytes = 0;
  for (std::size_t i = 0; i < head_.catalog.size(); ++i) {
    (i < head_.base_objects ? base_bytes : delta_bytes) += head_.catalog[i].bytes;
  }
  return head_.catalog.size() - head_.base_objects >= kDeltasMax ||
         delta_bytes > std::max(base_bytes, parts_.delta_bytes_min);
}

// A rebuilt catalog has another identity. Its commits are counted from the start, and the catalog
// may give numbers of files removed by an earlier catalog.
Result<bool> ChangeFinder::is_rebuilt(const meta::Txn& catalog) const {
  if (head_.number == 0) return false;
  const auto* const table = meta::catalog::kTables[meta::catalog::kSettings];
  VARVE_TRY_ASSIGN(const auto known, meta::ReadTxn::begin(copy_));
  VARVE_TRY_ASSIGN(const auto here, meta::find_stored(catalog, table, kCatalogIdKey));
  VARVE_TRY_ASSIGN(const auto there, meta::find_stored(known, table, kCatalogIdKey));
  return here != there;
}

void ChangeFinder::note_all() {
  others_.clear();
  uncut_.clear();
  for (const auto& [path, extents] : objects_) note_path(path);
}

// Enters the path of a file into its lists after a change of the file's extents.
void ChangeFinder::note_path(const std::string& path) {
  const auto found = objects_.find(path);
  others_.erase(path);
  uncut_.erase(path);
  if (found == objects_.end()) return;
  if (found->second.front().mark != 0) {
    others_.insert(path);
  } else if (std::ranges::any_of(found->second, is_worth_cutting)) {
    uncut_.insert(path);
  }
}

}  // namespace varve::remote
