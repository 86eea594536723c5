// SPDX-License-Identifier: Apache-2.0
#include "maintain/series_file_repair.h"

#include <fmt/core.h>

#include <utility>

#include "base/system_error.h"
#include "catalog/series_catalog.h"
#include "format/beside.h"
#include "maintain/deletion_notes.h"
#include "maintain/free_names.h"
#include "store/repository_names.h"

namespace varve::maintain {

namespace {

// Returns the names of the sealed versions that only the labels list: the catalog has deleted these
// versions, or comes from another copy of the repository.
Result<std::string> deleted_versions(const meta::Env& catalog, SeriesId series,
                                     const Labels& labels) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto owner, catalog::find_series(txn, series));
  std::string names;
  for (const auto& record : labelled_versions(series, labels)) {
    VARVE_TRY_ASSIGN(const auto known, catalog::find_version(txn, series, record.number));
    if (known || record.state != VersionState::kSealed) continue;
    names += (names.empty() ? "" : ", ") + (owner ? owner->name + "/" : "") + record.name;
  }
  return names;
}

}  // namespace

// Plans the removal of damaged manifests. The next opening writes new manifests from the catalog.
Result<void> SeriesFileRepair::scan_manifests(const meta::Env& catalog,
                                              const HistoryRepair& histories) {
  for (const auto& file : histories.mixed()) {
    if (file.is_data) continue;
    scope_.add_step(
        RepairStep::Kind::kManifest, file.path,
        fmt::format("{}: {}; the repair keeps the file under another name, and writes it again "
                    "from the catalog",
                    file.versions, file.fault));
  }
  VARVE_TRY_ASSIGN(const auto folders, series_folders(scope_.files, scope_.path()));
  for (const auto series : folders) {
    const auto directory = scope_.paths.series(series);
    const auto damaged_step = [&](const std::string& path) {
      scope_.add_step(RepairStep::Kind::kManifest, path,
                      "it is damaged; the repair writes it again from the catalog");
    };
    VARVE_TRY_ASSIGN(const auto present, list_manifests(scope_.files, directory));
    bool any = false;
    for (const auto& file : present) {
      const auto path = manifest_path(directory, file.number);
      any = any || histories.is_mixed(path);
      if (histories.is_mixed(path)) continue;
      const auto state = state_of_manifest(scope_.files, scope_.codecs.frames(), path, catalog,
                                           series, file.number);
      if (state && state->fault.empty()) continue;
      VARVE_TRY(refuse_unsupported(state));
      damaged_step(path);
      manifests_.push_back(path);
      any = true;
    }
    if (histories.is_mixed(directory + "/" + kLabelsName)) continue;
    const auto labels = read_labels(scope_.files, scope_.codecs.frames(), directory, series);
    VARVE_TRY(refuse_unsupported(labels));
    const bool damaged = !labels && labels.error().code() != ErrorCode::kNotFound;
    if (damaged) damaged_step(directory + "/" + kLabelsName);
    VARVE_TRY_ASSIGN(const bool lacking, lacks_changes(catalog, series, labels));
    if (lacking) {
      VARVE_TRY_ASSIGN(const auto deleted, deleted_versions(catalog, series, *labels));
      scope_.add_step(
          RepairStep::Kind::kManifest, directory + "/" + kLabelsName,
          "the labels lack changes that the catalog has; the repair writes them again from the "
          "catalog" +
              (deleted.empty() ? std::string()
                               : ". Only the labels list " + deleted +
                                     ", which count as deleted; if the catalog is of another "
                                     "copy, complete that copy first"));
    }
    if (damaged || lacking || (any && labels)) labels_.push_back(series);
    if (any) lacks_manifests_.insert(series);
  }
  return {};
}

// A writer without the lock may be between a commit and the write of the labels.
Result<bool> SeriesFileRepair::lacks_changes(const meta::Env& catalog, SeriesId series,
                                             const Result<Labels>& labels) const {
  if (!labels || !scope_.has_lock) return false;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto record, catalog::find_series(txn, series));
  if (!record) return false;  // A crash left the folder of a removed series.
  VARVE_TRY_ASSIGN(const bool agree, sealed_labels_agree(txn, series, *labels));
  return labels->torn || !agree;
}

// No copy of the files beside versions exists, so the repair keeps the damaged file.
Result<void> SeriesFileRepair::scan_beside() {
  VARVE_TRY_ASSIGN(const auto folders, series_folders(scope_.files, scope_.path()));
  for (const auto series : folders) {
    const auto path = fmt::format("{}/{}", scope_.paths.series(series), store::kBesideName);
    const auto bytes = scope_.files.read_file(path, format::kBesideImageBytesMax);
    if (!bytes && bytes.error().code() == ErrorCode::kNotFound) continue;
    const auto image = bytes ? format::decode_beside(series, *bytes) : bytes.error();
    if (image) continue;
    VARVE_TRY(refuse_unsupported(image));
    scope_.add_step(
        RepairStep::Kind::kBeside, path,
        image.error().message() +
            "; no version is touched. The repair renames the file, and the series begins without "
            "the programs' files in it");
    beside_.push_back(series);
  }
  return {};
}

Result<void> SeriesFileRepair::scan_derived(const meta::Env& catalog) {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(const auto notes, find_damaged_notes(txn));
    for (const auto& note : notes) {
      scope_.add_step(RepairStep::Kind::kDerived, scope_.catalog_path(),
                      "the note of the last deletion in the series " + note.name +
                          " is damaged; the repair removes the note. No version is touched");
    }
  }
  VARVE_TRY_ASSIGN(const auto faults,
                   scope_.helpers.find_derived(scope_.files, scope_.path(), DerivedFiles::kAll));
  for (const auto& fault : faults) {
    // Errors other than damage may be temporary, such as missing rights.
    scope_.watch.note(fault.error);
    if (!base::is_damage(fault.error)) continue;
    scope_.add_step(
        RepairStep::Kind::kDerived, fault.path,
        fault.error.message() +
            "; the repair removes it, and the next backup builds it again. No version is touched");
    derived_.push_back(fault.path);
    if (!fault.dependent.empty()) derived_.push_back(fault.dependent);
  }
  return {};
}

Result<void> SeriesFileRepair::put_beside_away(RepairReport& report) const {
  for (const auto series : beside_) {
    const auto folder = scope_.paths.series(series);
    VARVE_TRY_ASSIGN(
        const auto name,
        rename_to_free_name(scope_.files, fmt::format("{}/{}", folder, store::kBesideName)));
    VARVE_TRY(scope_.files.sync_directory(folder));
    report.problems.push_back("the programs' files beside the versions, which are kept as " + name);
  }
  return {};
}

Result<void> SeriesFileRepair::remove_damaged(const meta::Env& catalog) const {
  VARVE_TRY(remove_files(manifests_));
  VARVE_TRY(remove_files(derived_));
  return erase_damaged_notes(catalog);
}

// The present labels stay until the new ones are whole: on a full disk, a rebuild still has names
// and locks. Labels without a note of deleted versions make the next opening look for objects of
// deleted versions, which removed manifests may have had.
Result<void> SeriesFileRepair::replace_labels(const meta::Env& catalog) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  for (const auto series : labels_) {
    const auto directory = scope_.paths.series(series);
    VARVE_TRY_ASSIGN(const auto record, catalog::find_series(txn, series));
    if (!record) {  // Labels of a removed series.
      VARVE_TRY(remove_files({directory + "/" + kLabelsName}));
      continue;
    }
    VARVE_TRY_ASSIGN(const auto removed, removed_versions(txn, scope_.files, directory, series));
    LabelsView view;
    if (!lacks_manifests_.contains(series)) view.removed = &removed;
    VARVE_TRY_ASSIGN(const auto labels, encode_labels(txn, scope_.codecs.frames(), series,
                                                      scope_.superblock.text(), view));
    VARVE_TRY(write_labels(scope_.files, directory, labels));
  }
  return {};
}

Result<void> SeriesFileRepair::remove_files(const std::vector<std::string>& paths) const {
  for (const auto& path : paths) {
    const auto removed = scope_.files.remove(path);
    if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed.error();
  }
  return {};
}

}  // namespace varve::maintain
