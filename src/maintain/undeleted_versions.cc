// SPDX-License-Identifier: Apache-2.0
#include "maintain/undeleted_versions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/coding.h"
#include "base/id_runs.h"
#include "catalog/birth_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "maintain/container_scan.h"
#include "maintain/deletion_notes.h"
#include "maintain/later_state.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"
#include "store/folder_store.h"
#include "store/repository_paths.h"

namespace varve::maintain {

namespace {

using format::ManifestRecord;

// Returns the subset of `ids` located by the catalog in the files `segments`.
Result<base::IdRuns> chunks_in_files(const meta::Txn& txn, StoreId store, const base::IdRuns& ids,
                                     const std::set<SegmentNumber>& segments) {
  std::vector<base::IdRun> runs;
  const auto of_store = store == kPoolStore ? catalog::pool_part(ids) : catalog::own_part(ids);
  VARVE_TRY(catalog::for_each_location_of(
      txn, store, of_store, [&](const catalog::LocationRecord& at) -> Result<bool> {
        VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn, store, at.container));
        if (record && segments.contains(record->segment)) runs.push_back({at.first, at.count});
        return true;
      }));
  return base::IdRuns::from(std::move(runs)).intersect(ids);
}

/// The parts of a sealed version's manifest that a comparison needs.
struct SealedVersion {
  base::IdRuns chunks;
  format::Births births;
};

/// Looks for the data of versions missing from the catalog.
class UndeletedSearch {
 public:
  UndeletedSearch(io::FileSystem& files, const format::DataCodecs& codecs,
                  const store::StoreOpener& open, const std::string& repository_path,
                  const meta::Env& catalog)
      : files_(files), codecs_(codecs), open_(open), paths_(repository_path), catalog_(catalog) {}

  Result<std::vector<MixedFile>> run() {
    VARVE_TRY_ASSIGN(const auto folders, series_folders(files_, paths_.root()));
    for (const auto series : folders) VARVE_TRY(look_in(series));
    return std::move(found_);
  }

 private:
  Result<void> look_in(SeriesId series) {
    const auto labels = read_labels(files_, codecs_.frames(), paths_.series(series), series);
    VARVE_TRY(refuse_unsupported(labels));
    if (!labels) return {};
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const bool is_later, are_later_labels(txn, *labels));
    if (is_later) return {};  // The catalog is older.
    VARVE_TRY_ASSIGN(const auto owner, catalog::find_series(txn, series));
    const auto labelled = catalog::decode_series(series, labels->series);
    const auto name = owner ? owner->name : labelled ? labelled->name : std::string("a series");
    VARVE_TRY_ASSIGN(const auto deletion, readable_deletion(txn, series));
    for (const auto& record : labelled_versions(series, *labels)) {
      const bool is_given =
          !owner || static_cast<std::uint32_t>(record.number) < owner->next_number;
      if (record.state != VersionState::kSealed || !is_given) continue;
      VARVE_TRY_ASSIGN(const auto known, catalog::find_version(txn, series, record.number));
      if (known) continue;
      if (deletion && deletion->labels_stamp == labels->header.stamp) {
        const auto its = deletion->sealed.find(record.number);
        if (its != deletion->sealed.end() && its->second == record.sealed_at) continue;
      }
      VARVE_TRY_ASSIGN(const auto version, read_version(record));
      if (!version) continue;
      VARVE_TRY_ASSIGN(const bool has_data, has_own_data(txn, record, *version));
      if (!has_data) continue;
      found_.push_back({series, record.number, manifest_path(paths_.series(series), record.number),
                        name + "/" + record.name,
                        "the catalog does not have this version and has not deleted it, and the "
                        "folder has its data"});
    }
    return {};
  }

  // Returns nullopt without a sound manifest of the same seal.
  Result<std::optional<SealedVersion>> read_version(const catalog::VersionRecord& labelled) {
    SealedVersion version;
    bool is_same = false;
    bool has_chunks = false;
    const auto visit = [&](ManifestRecord what, std::string_view key,
                           std::string_view value) -> Result<void> {
      const bool is_own =
          key.size() == 4 && base::load_be32(key) == static_cast<std::uint32_t>(labelled.number);
      if (!is_own) return {};
      if (what == ManifestRecord::kVersion) {
        const auto record = catalog::decode_version(labelled.series, labelled.number, value);
        is_same = record && is_same_seal(*record, labelled);
      } else if (what == ManifestRecord::kVersionChunks) {
        auto chunks = base::IdRuns::decode(value);
        has_chunks = chunks.has_value();
        if (chunks) version.chunks = *std::move(chunks);
      } else if (what == ManifestRecord::kBirths) {
        auto births = format::decode_births(value);
        if (births) version.births = *std::move(births);
      }
      return {};
    };
    const auto path = manifest_path(paths_.series(labelled.series), labelled.number);
    const auto read = read_manifest(files_, codecs_.frames(), path, visit);
    VARVE_TRY(refuse_unsupported(read));
    if (!read || !is_same || !has_chunks) return std::optional<SealedVersion>();
    return std::optional(std::move(version));
  }

  Result<bool> has_own_data(const meta::Txn& txn, const catalog::VersionRecord& record,
                            const SealedVersion& version) {
    const auto series = record.series;
    VARVE_TRY_ASSIGN(const auto present, present_chunks(txn, series, version.chunks));
    const auto rest = version.chunks.subtract(present);
    if (rest.size() != 0) {
      VARVE_TRY_ASSIGN(const auto* own, unknown_chunks(txn, series));
      VARVE_TRY_ASSIGN(const auto* shared, unknown_chunks(txn, kPoolOwner));
      const auto here = own->unite(*shared);
      return rest.intersect(here).size() != 0;
    }
    // All data is shared. The catalog keeps the birth of a deleted version while another version
    // needs a page of the deleted version.
    const auto birth = version.births.find(record.number);
    if (birth == version.births.end()) return false;
    VARVE_TRY_ASSIGN(const auto kept,
                     catalog::find_birth(txn, catalog::store_of(series), record.number));
    return !kept || kept->mark != birth->second.mark;
  }

  // Returns the subset of `ids` located by the catalog in present files.
  Result<base::IdRuns> present_chunks(const meta::Txn& txn, SeriesId series,
                                      const base::IdRuns& ids) {
    VARVE_TRY_ASSIGN(auto located, located_chunks(txn, series, ids));
    for (const auto owner : {series, kPoolOwner}) {
      VARVE_TRY_ASSIGN(const auto* files, files_of(txn, owner));
      if (files->missing.empty()) continue;
      VARVE_TRY_ASSIGN(const auto lost,
                       chunks_in_files(txn, catalog::store_of(owner), located, files->missing));
      located = located.subtract(lost);
    }
    return located;
  }

  Result<const StoreDifference*> files_of(const meta::Txn& txn, SeriesId owner) {
    const auto known = differences_.find(owner);
    if (known != differences_.end()) return &known->second;
    const auto store = store::open_store(open_, files_, owner_folder(paths_, owner));
    VARVE_TRY_ASSIGN(auto difference, compare_store(txn, *store, catalog::store_of(owner)));
    return &differences_.emplace(owner, std::move(difference)).first->second;
  }

  // Returns the chunks in the files unknown to the catalog.
  Result<const base::IdRuns*> unknown_chunks(const meta::Txn& txn, SeriesId owner) {
    const auto known = unknown_.find(owner);
    if (known != unknown_.end()) return &known->second;
    VARVE_TRY_ASSIGN(const auto* files, files_of(txn, owner));
    const auto store = store::open_store(open_, files_, owner_folder(paths_, owner));
    VARVE_TRY_ASSIGN(const auto scan,
                     scan_files(*store, codecs_.frames().keys(), catalog::store_of(owner),
                                files->unknown, FoundBySearch::kLeave, {}));
    return &unknown_.emplace(owner, chunks_in(scan)).first->second;
  }

  io::FileSystem& files_;
  const format::DataCodecs& codecs_;
  const store::StoreOpener& open_;
  const store::RepositoryPaths paths_;
  const meta::Env& catalog_;
  std::map<SeriesId, StoreDifference> differences_;
  std::map<SeriesId, base::IdRuns> unknown_;
  std::vector<MixedFile> found_;
};

}  // namespace

// A writer may be active: between a deletion and the write of the labels, a reader may see older
// labels and a newer catalog. Only versions found by two passes count.
Result<std::vector<MixedFile>> find_undeleted(io::FileSystem& files,
                                              const format::DataCodecs& codecs,
                                              const store::StoreOpener& open,
                                              const std::string& repository_path,
                                              const meta::Env& catalog) {
  auto found = UndeletedSearch(files, codecs, open, repository_path, catalog).run();
  if (!found || found->empty()) return found;
  return UndeletedSearch(files, codecs, open, repository_path, catalog).run();
}

Result<std::vector<MixedFile>> find_displaced(io::FileSystem& files,
                                              const format::DataCodecs& codecs,
                                              const store::StoreOpener& open,
                                              const std::string& repository_path,
                                              const meta::Env& catalog) {
  const store::RepositoryPaths paths(repository_path);
  std::vector<MixedFile> found;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto owners, owners_in(txn));
  for (const auto owner : owners) {
    const auto id = catalog::store_of(owner);
    const auto store = store::open_store(open, files, owner_folder(paths, owner));
    VARVE_TRY_ASSIGN(const auto difference, compare_store(txn, *store, id));
    if (difference.missing.empty()) continue;
    for (const auto segment : difference.unknown) {
      VARVE_TRY_ASSIGN(const auto scan, scan_files(*store, codecs.frames().keys(), id, {segment},
                                                   FoundBySearch::kLeave, {}));
      VARVE_TRY_ASSIGN(const auto moved,
                       chunks_in_files(txn, id, chunks_in(scan), difference.missing));
      if (moved.size() == 0) continue;
      const auto first = moved.runs().front().first.birth();
      VARVE_TRY_ASSIGN(const auto birth, catalog::find_birth(txn, id, first));
      const auto of = birth ? birth->series : owner;
      VARVE_TRY_ASSIGN(const auto series, catalog::find_series(txn, of));
      found.push_back({of, birth ? birth->version : first, store->describe(segment),
                       series ? series->name : store->describe(),
                       fmt::format("the catalog expects {} chunks of this file in a file that is "
                                   "missing",
                                   moved.size()),
                       true});
    }
  }
  return found;
}

}  // namespace varve::maintain
