// SPDX-License-Identifier: Apache-2.0
#include "maintain/history_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "catalog/birth_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"
#include "meta/schema.h"
#include "store/repository_paths.h"
#include "store/segment_files.h"

namespace varve::maintain {

namespace {

/// Compares the files of one series with the catalog.
class SeriesComparison {
 public:
  SeriesComparison(io::FileSystem& files, const format::FrameCodec& codec,
                   const std::string& repository_path, const meta::Env& catalog, SeriesId series)
      : files_(files),
        codec_(codec),
        directory_(store::RepositoryPaths(repository_path).series(series)),
        catalog_(catalog),
        series_(series) {}

  Result<void> run() {
    VARVE_TRY(compare_labels());
    VARVE_TRY_ASSIGN(const auto present, list_manifests(files_, directory_));
    std::vector<VersionNumber> unknown;
    for (const auto& file : present) {
      const auto path = manifest_path(directory_, file.number);
      const auto state = state_of_manifest(files_, codec_, path, catalog_, series_, file.number);
      VARVE_TRY(refuse_unsupported(state));
      if (!state) continue;
      if (state->of_other_history) {
        note(other_, file.number, path, name_of(file.number, state->version_name), state->fault);
      } else if (state->is_unknown) {
        unknown.push_back(file.number);
      }
    }
    auto first = next_;
    for (const auto& file : other_) first = std::min(first, file.number);
    for (const auto number : unknown) {
      if (number < first) continue;
      note(later_, number, manifest_path(directory_, number), name_of(number, ""),
           "the catalog has no such version");
    }
    return {};
  }

  /// Files of another history.
  [[nodiscard]] const std::vector<MixedFile>& other() const { return other_; }
  /// Returns the files that may be of a later state than the catalog.
  [[nodiscard]] const std::vector<MixedFile>& later() const { return later_; }

 private:
  Result<void> compare_labels() {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto known, catalog::find_series(txn, series_));
    VARVE_TRY_ASSIGN(const auto last, catalog::last_version_number(txn, series_));
    const auto next =
        std::max(known ? known->next_number : 1, number_after(static_cast<VersionNumber>(last)));
    next_ = static_cast<VersionNumber>(next);
    const auto labels = read_labels(files_, codec_, directory_, series_);
    VARVE_TRY(refuse_unsupported(labels));
    if (!labels) return {};
    const auto owner = catalog::decode_series(series_, labels->series);
    if (known || owner) series_name_ = known ? known->name : owner->name;
    const auto path = directory_ + "/" + kLabelsName;
    VARVE_TRY(compare_versions(txn, *labels, path));
    if (!other_.empty()) return {};
    VARVE_TRY_ASSIGN(const auto id, txn.get(meta::catalog::kSettings, kCatalogIdSetting));
    const bool is_same_catalog = id && id->view() == labels->catalog_id;
    VARVE_TRY_ASSIGN(const bool is_later, are_later_labels(txn, *labels));
    const auto of_labels = known && owner ? owner->next_number : next;
    const auto missing = only_in_labels_.empty() ? series_name_ : only_in_labels_;
    // In one history, the numbers and the stamps ascend together.
    if (is_same_catalog && (is_later ? of_labels < next : of_labels > next)) {
      note(other_, static_cast<VersionNumber>(std::min(of_labels, next)), path, missing,
           "the labels are of another state than the catalog, and neither state is the later one");
    } else if (is_later || of_labels > next) {
      note(later_, next_, path, missing, "the labels are of a later state than the catalog");
    }
    return {};
  }

  Result<void> compare_versions(const meta::Txn& txn, const Labels& labels,
                                const std::string& path) {
    std::string names;
    VersionNumber first{};
    for (const auto& record : labelled_versions(series_, labels)) {
      VARVE_TRY_ASSIGN(const auto known, catalog::find_version(txn, series_, record.number));
      if (!known) add_name(only_in_labels_, name_of(record.number, record.name));
      if (!known || may_be_same_version(record, *known)) continue;
      if (names.empty()) first = record.number;
      add_name(names, name_of(record.number, record.name));
    }
    if (names.empty()) return {};
    note(other_, first, path, std::move(names),
         "the labels list other versions under their numbers than the catalog");
    return {};
  }

  void note(std::vector<MixedFile>& to, VersionNumber number, std::string path,
            std::string versions, std::string fault) const {
    to.push_back({series_, number, std::move(path), std::move(versions), std::move(fault)});
  }

  static void add_name(std::string& names, const std::string& name) {
    names += (names.empty() ? "" : ", ") + name;
  }

  // Returns the name of a version with the name of the series.
  [[nodiscard]] std::string name_of(VersionNumber number, const std::string& name) const {
    const auto series = series_name_.empty()
                            ? fmt::format("series {}", static_cast<std::uint32_t>(series_))
                            : series_name_;
    if (!name.empty()) return series + "/" + name;
    return fmt::format("{}/version {}", series, static_cast<std::uint32_t>(number));
  }

  io::FileSystem& files_;
  const format::FrameCodec& codec_;
  const std::string directory_;
  const meta::Env& catalog_;
  const SeriesId series_;
  std::string series_name_;
  std::string only_in_labels_;  // Names of the versions missing from the catalog.
  VersionNumber next_{};        // The catalog's next number for a version.
  std::vector<MixedFile> other_;
  std::vector<MixedFile> later_;
};

/// The lowest differing number of each series.
using FirstMixed = std::map<SeriesId, VersionNumber>;

// Returns the containers with chunks stored by the first differing version or later versions.
Result<std::set<ContainerNumber>> contested_containers(const meta::Txn& txn, SeriesId owner,
                                                       const FirstMixed& first) {
  const auto store = catalog::store_of(owner);
  std::set<VersionNumber> births;
  VARVE_TRY(catalog::for_each_birth(
      txn, store, [&](VersionNumber number, const format::Birth& birth) -> Result<bool> {
        const auto from = first.find(birth.series);
        if (from != first.end() && birth.version >= from->second) births.insert(number);
        return true;
      }));
  std::set<ContainerNumber> containers;
  for (const auto birth : births) {
    VARVE_TRY(catalog::for_each_location_of(txn, store, catalog::ids_of_birth(birth),
                                            [&](const auto& run) -> Result<bool> {
                                              containers.insert(run.container);
                                              return true;
                                            }));
  }
  return containers;
}

// As fits_most_data(), for all of `mixed` together.
Result<bool> fits_beside(const format::DataCodecs& codecs, const meta::Env& catalog,
                         const std::vector<MixedFile>& mixed, const StoreOf& store_of) {
  FirstMixed first;
  for (const auto& file : mixed) {
    const auto [its, is_new] = first.emplace(file.series, file.number);
    if (!is_new) its->second = std::min(its->second, file.number);
  }
  std::uint64_t fitting = 0;
  std::uint64_t others = 0;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto owners, owners_in(txn));
  for (const auto owner : owners) {
    store::SegmentReader reader(store_of(owner), codecs.frames().keys());
    const auto store = catalog::store_of(owner);
    VARVE_TRY_ASSIGN(const auto containers, contested_containers(txn, owner, first));
    for (const auto number : containers) {
      VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn, store, number));
      if (!record) continue;
      const auto header = reader.read_header(store, *record);
      const bool is_other = !header && (header.error().code() == ErrorCode::kCorrupt ||
                                        header.error().code() == ErrorCode::kNotFound);
      if (!header && !is_other) return header.error();
      // Bytes on the disk, like the sizes of the unknown files below.
      (header ? fitting : others) += record->end() - record->offset;
    }
    VARVE_TRY_ASSIGN(const auto difference, compare_store(txn, store_of(owner), store));
    for (const auto segment : difference.unknown) {
      VARVE_TRY_ASSIGN(const auto size, store_of(owner).size(segment));
      others += size;
    }
  }
  return fitting >= others;
}

}  // namespace

Result<StoreDifference> compare_store(const meta::Txn& txn, store::SegmentStore& store,
                                      StoreId id) {
  VARVE_TRY_ASSIGN(const auto records, catalog::list_segments(txn, id));
  StoreDifference found;
  for (const auto& record : records) found.missing.insert(record.segment);
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY_ASSIGN(const auto names, store.list(kind));
    for (const auto& name : names) {
      const auto segment = std::get<SegmentNumber>(name);
      if (found.missing.erase(segment) == 0) found.unknown.push_back(segment);
    }
  }
  return found;
}

Error mixed_histories(const std::string& where, const std::string& fault) {
  return {
      ErrorCode::kInvalid,
      fmt::format("{}: {}. The folder has files of two histories of the repository, as an "
                  "interrupted copy of one state over another leaves them. Nothing was changed. "
                  "Complete that copy, so that all files are of one state, and repair again; or "
                  "repair with --mixed=skip, which leaves out what does not fit most of the "
                  "data",
                  where, fault)};
}

Result<HistoryComparison> compare_with_files(io::FileSystem& files, const format::FrameCodec& codec,
                                             const std::string& repository_path,
                                             const meta::Env& catalog) {
  HistoryComparison found;
  VARVE_TRY_ASSIGN(const auto folders, series_folders(files, repository_path));
  for (const auto series : folders) {
    SeriesComparison one(files, codec, repository_path, catalog, series);
    VARVE_TRY(one.run());
    found.other.insert(found.other.end(), one.other().begin(), one.other().end());
    found.later.insert(found.later.end(), one.later().begin(), one.later().end());
  }
  return found;
}

Result<bool> fits_most_data(const format::DataCodecs& codecs, const meta::Env& catalog,
                            const std::vector<MixedFile>& mixed, const StoreOf& store_of) {
  // If the catalog stays, labels and manifests get other names.
  std::vector<MixedFile> data;
  std::ranges::copy_if(mixed, std::back_inserter(data), &MixedFile::is_data);
  if (!data.empty() && data.size() != mixed.size()) {
    VARVE_TRY_ASSIGN(const bool fits, fits_beside(codecs, catalog, data, store_of));
    if (!fits) return false;
  }
  return fits_beside(codecs, catalog, mixed, store_of);
}

Result<std::vector<ListedVersion>> list_versions_of(const meta::Env& catalog) {
  std::vector<ListedVersion> versions;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
    for (const auto& record : records) {
      if (record.unfinished) continue;
      VARVE_TRY_ASSIGN(const auto retention,
                       catalog::find_retention(txn, series.id, record.number));
      versions.push_back({series.name + "/" + record.name, record.name, series.id, record.number,
                          record.state == VersionState::kSealed, record.sealed_at,
                          retention.locked_until});
    }
  }
  return versions;
}

Result<std::vector<ListedVersion>> missing_in(const meta::Env& catalog,
                                              const std::vector<ListedVersion>& versions) {
  std::vector<ListedVersion> missing;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  for (const auto& version : versions) {
    VARVE_TRY_ASSIGN(const auto known, catalog::find_version(txn, version.series, version.number));
    const bool is_same = known && (!version.sealed || (known->state == VersionState::kSealed &&
                                                       known->sealed_at == version.sealed_at));
    if (!is_same) missing.push_back(version);
  }
  return missing;
}

}  // namespace varve::maintain
