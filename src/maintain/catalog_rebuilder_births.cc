// SPDX-License-Identifier: Apache-2.0
// Leaves out the files of another history of the repository.
#include <fmt/format.h>

#include <algorithm>

#include "maintain/catalog_rebuilder.h"
#include "maintain/owners.h"
#include "meta/schema.h"
#include "store/folder_store.h"

namespace varve::maintain {

using format::ManifestRecord;

Result<void> CatalogRebuilder::leave_out(const std::string& where, const std::string& fault) {
  if (!choices_.skip_mixed) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{}: {}. The folder has files of two histories of the repository, as "
                             "an interrupted copy of one state over another leaves them. Nothing "
                             "was changed. Complete that copy, so that all files are of one state, "
                             "and repair again; or repair with --mixed=skip, which leaves out what "
                             "does not fit most of the data",
                             where, fault));
  }
  whole_ = false;
  problem(fmt::format("{}: {}; they are left out", where, fault));
  return {};
}

Result<void> CatalogRebuilder::drop_other_history(SeriesId series, const ScannedStore& own) {
  store::FolderStore shared(files_, series_directory(kPoolOwner));
  const ScannedStore pool{shared, kPoolStore, pool_.runs, pool_.births};
  for (auto it = versions_.begin(); it != versions_.end();) {
    const auto& [number, version] = *it;
    std::string fault;
    const bool sealed = version.record && version.record->state == VersionState::kSealed;
    if (version.of_other_seal) {
      fault = "the labels list another version under this number than the manifest has";
    } else if (version.births && (!version.record || (sealed && version.chunks))) {
      // Without a record, it is the manifest of a deleted version, which has pages that others may
      // use.
      VersionBirths one{series, number, *version.births, {}};
      if (version.record) {
        VARVE_TRY_ASSIGN(one.chunks, base::IdRuns::decode(*version.chunks));
      }
      VARVE_TRY_ASSIGN(fault, check_births(codecs_.frames().keys(), one, own, pool));
    }
    if (fault.empty()) {
      ++it;
      continue;
    }
    const auto path = manifest_path(series_directory(series), number);
    VARVE_TRY(leave_out(name_of(number) + " (" + path + ")", fault));
    report_.left_out.push_back(path);
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
    for (const auto table : {meta::catalog::kNodes, meta::catalog::kRecipes}) {
      VARVE_TRY(txn.erase_prefix(table, meta::version_key(series, number)));
    }
    VARVE_TRY(txn.commit());
    report_lost_lock(number, version);
    owner_->next_number = std::max(owner_->next_number, static_cast<std::uint32_t>(number) + 1);
    it = versions_.erase(it);
  }
  return {};
}

// Only manifests tell which of several marks of a birth are of the repository.
Result<void> CatalogRebuilder::note_pool_births() {
  const bool has_marks = std::ranges::any_of(
      pool_.scan.containers, [](const FoundContainer& found) { return !found.marks.empty(); });
  if (!has_marks) return {};
  VARVE_TRY_ASSIGN(const auto all, series_folders(files_, path_));
  for (const auto series : all) {
    VARVE_TRY_ASSIGN(const auto present, list_manifests(files_, series_directory(series)));
    for (const auto& file : present) {
      const auto visit = [&](ManifestRecord what, std::string_view,
                             std::string_view value) -> Result<void> {
        if (what != ManifestRecord::kBirths) return {};
        const auto births = format::decode_births(value);
        if (births) pool_.births.note(*births);  // read_manifests() reports the other ones.
        return {};
      };
      const auto read = read_manifest(files_, codecs_.frames(),
                                      manifest_path(series_directory(series), file.number), visit);
      VARVE_TRY(refuse_unsupported(read));
    }
  }
  return {};
}

}  // namespace varve::maintain
