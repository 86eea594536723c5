// SPDX-License-Identifier: Apache-2.0
#include "maintain/catalog_replacer.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "maintain/catalog_faults.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/free_names.h"
#include "maintain/lost_objects.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"
#include "store/repository_names.h"

namespace varve::maintain {

namespace {

constexpr const char* kNewCatalog = "/catalog.new";
constexpr const char* kLeftOutText = "the manifest of a version that was left out is kept as ";

void add_all(const std::vector<std::string>& texts, std::vector<std::string>& to) {
  to.insert(to.end(), texts.begin(), texts.end());
}

// Opens the catalog in place, unless `is_of_use` is false: a catalog of another history does not
// fit the labels and manifests.
Result<std::optional<meta::Env>> open_in_place(bool is_of_use, io::FileSystem& files,
                                               const std::string& path,
                                               const meta::EnvOptions& options) {
  std::optional<meta::Env> in_place;
  if (!is_of_use) return in_place;
  VARVE_TRY_ASSIGN(auto opened, meta::Env::open(files, path, options));
  in_place.emplace(std::move(opened));
  return in_place;
}

}  // namespace

Result<void> CatalogReplacer::try_rebuild(bool with_data, const Progress& progress) const {
  if (scope_.options.skip_mixed) return {};
  VARVE_TRY_ASSIGN(const auto fresh, make_fresh_folder());
  Result<void> tried;
  {
    VARVE_TRY_ASSIGN(const auto env,
                     meta::Env::open(scope_.files, fresh, scope_.catalog_options(false)));
    RebuildChoices choices;
    choices.listed = histories_.listed();
    choices.found = FoundBySearch::kLeave;  // Parity may restore the damaged headers.
    CheckProgress done;
    VARVE_TRY_ASSIGN(
        const auto in_place,
        open_in_place(!histories_.listed().empty() && histories_.mixed().empty(), scope_.files,
                      scope_.catalog_path(), scope_.catalog_options(true)));
    choices.in_place = in_place ? &*in_place : nullptr;
    CatalogRebuilder trial(scope_.codecs, scope_.files, scope_.helpers.open_store, scope_.path(),
                           env, choices, [&](std::uint64_t bytes) {
                             done.bytes_done += bytes;
                             if (progress) progress(done);
                           });
    const auto built = trial.run();
    const auto judged = built ? histories_.lacks_later_state(env, with_data) : built.error();
    if (!judged && judged.error().code() == ErrorCode::kInvalid) tried = judged.error();
  }
  VARVE_TRY(store::remove_folder(scope_.files, fresh, store::FolderKind::kEnvironment));
  return tried;
}

// Follows docs/ORDERING.md O23.
Result<void> CatalogReplacer::replace(const Progress& progress, RepairReport& report) const {
  VARVE_TRY_ASSIGN(const auto fresh, make_fresh_folder());
  CheckProgress done;
  std::vector<std::string> left_out;
  const auto& paths = scope_.paths;
  VARVE_TRY_ASSIGN(const auto owners, owner_folders(scope_.files, paths));
  for (const auto owner : owners) {
    VARVE_TRY_ASSIGN(const auto bytes, scope_.files.tree_bytes(owner_folder(paths, owner)));
    done.bytes_total += bytes;
  }
  {
    VARVE_TRY_ASSIGN(const auto env,
                     meta::Env::open(scope_.files, fresh, scope_.catalog_options(false)));
    RebuildChoices choices;
    choices.skip_mixed = scope_.options.skip_mixed;
    choices.listed = histories_.listed();
    if (scope_.options.take_found) {
      choices.found = *scope_.options.take_found ? FoundBySearch::kTake : FoundBySearch::kLeave;
    }
    VARVE_TRY_ASSIGN(
        const auto in_place,
        open_in_place(!histories_.listed().empty() && histories_.mixed().empty(), scope_.files,
                      scope_.catalog_path(), scope_.catalog_options(true)));
    choices.in_place = in_place ? &*in_place : nullptr;
    CatalogRebuilder rebuilder(scope_.codecs, scope_.files, scope_.helpers.open_store,
                               scope_.path(), env, choices, [&](std::uint64_t bytes) {
                                 done.bytes_done += bytes;
                                 if (progress) progress(done);
                               });
    auto built = rebuilder.run();
    const auto stays = built ? histories_.lacks_later_state(env, true) : built.error();
    if (stays) VARVE_TRY(scope_.remove_settled());
    if (!stays || *stays) {
      if (stays) VARVE_TRY(histories_.put_later_state_away(env, report));
      VARVE_TRY(store::remove_folder(scope_.files, fresh, store::FolderKind::kEnvironment));
      // If the repair stops, the folder remains unchanged.
      return stays ? Result<void>() : stays.error();
    }
    report.versions = built->versions;
    report.bytes_read += built->bytes_read;
    report.problems = std::move(built->problems);
    report.notes = std::move(built->notes);
    left_out = std::move(built->left_out);
    for (const auto& path : built->left_out_in_use) {
      VARVE_TRY_ASSIGN(const auto copy, copy_to_free_name(scope_.files, path));
      report.problems.push_back(kLeftOutText + copy);
    }
    // Data without a manifest stays lost. If the new catalog has the same faults, keep the old
    // catalog with the catalog's labels.
    const auto faults = find_catalog_faults(scope_, env);
    // After a read error, the rebuilt catalog lacks more than the lost data.
    VARVE_TRY(scope_.watch.conclusive());
    const bool is_same = !faults_.empty() && faults && faults->faults == faults_;
    if (!scope_.options.rebuild_catalog && histories_.mixed().empty() && is_same) {
      report.versions = 0;
      if (report.problems.empty()) report.problems = faults_;
      add_all(faults->lost_parts, report.problems);
      return store::remove_folder(scope_.files, fresh, store::FolderKind::kEnvironment);
    }
    if (faults) add_all(faults->lost_parts, report.problems);
    if (faults && !faults->lost_parts.empty()) VARVE_TRY(mark_lost_trees(env));
    VARVE_TRY_ASSIGN(const auto losses,
                     find_open_losses({scope_.files, scope_.path(), env, scope_.codecs.keys()},
                                      scope_.helpers.find_unstored, true));
    for (const auto& loss : losses) report.problems.push_back(describe_open_loss(loss));
    VARVE_TRY(histories_.name_missing(env, report));
    for (const auto series : built->other_labels) VARVE_TRY(copy_labels(series, report));
    VARVE_TRY_ASSIGN(const auto labels, rebuilder.labels(scope_.superblock.text()));
    for (const auto& [series, image] : labels) {
      VARVE_TRY(write_labels(scope_.files, paths.series(series), image));
    }
  }
  VARVE_TRY(scope_.files.sync_directory(fresh));
  VARVE_TRY_ASSIGN(report.old_catalog, put_old_catalog_away());
  if (!histories_.mixed().empty()) {
    report.problems.push_back("the catalog of another history is kept as " + report.old_catalog);
  }
  VARVE_TRY(scope_.files.rename(fresh, scope_.catalog_path()));
  VARVE_TRY(scope_.files.sync_directory(scope_.path()));
  for (const auto& path : left_out) {
    VARVE_TRY_ASSIGN(const auto name, rename_to_free_name(scope_.files, path));
    report.problems.push_back(kLeftOutText + name);
  }
  return {};
}

Result<std::string> CatalogReplacer::make_fresh_folder() const {
  const auto fresh = scope_.path() + kNewCatalog;
  // An interrupted attempt may have left the folder.
  VARVE_TRY(store::remove_folder(scope_.files, fresh, store::FolderKind::kEnvironment));
  VARVE_TRY(scope_.files.make_directory(fresh));
  return fresh;
}

Result<std::string> CatalogReplacer::put_old_catalog_away() const {
  const auto catalog_path = scope_.catalog_path();
  VARVE_TRY_ASSIGN(const bool present, scope_.files.exists(catalog_path));
  if (!present) return std::string();
  VARVE_TRY_ASSIGN(const bool any, scope_.files.exists(catalog_path + "/data.mdb"));
  if (!any) {
    VARVE_TRY(store::remove_folder(scope_.files, catalog_path, store::FolderKind::kEnvironment));
    // A foreign file prevents the removal of the folder, which then gets another name.
    VARVE_TRY_ASSIGN(const bool kept, scope_.files.exists(catalog_path));
    if (!kept) return std::string();
  }
  if (histories_.mixed().empty()) return rename_to_free_name(scope_.files, catalog_path);
  VARVE_TRY_ASSIGN(auto name, free_name(scope_.files, catalog_path + ".mixed"));
  VARVE_TRY(scope_.files.rename(catalog_path, name));
  return name;
}

Result<void> CatalogReplacer::copy_labels(SeriesId series, RepairReport& report) const {
  const auto folder = scope_.paths.series(series);
  VARVE_TRY_ASSIGN(const auto text,
                   scope_.files.read_file(folder + "/" + kLabelsName, kLabelsBytesMax));
  VARVE_TRY_ASSIGN(const auto path,
                   free_name(scope_.files, folder + "/" + kLabelsName + ".damaged"));
  VARVE_TRY(scope_.files.write_file_atomically(folder, path.substr(folder.size() + 1),
                                               base::as_bytes(text)));
  report.problems.push_back("the labels of another history are kept as " + path);
  return {};
}

}  // namespace varve::maintain
