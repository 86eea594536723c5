// SPDX-License-Identifier: Apache-2.0
#include "maintain/history_repair.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/clock.h"
#include "maintain/catalog_age.h"
#include "maintain/catalog_faults.h"
#include "maintain/free_names.h"
#include "maintain/later_state.h"
#include "maintain/manifest_file.h"
#include "maintain/undeleted_versions.h"
#include "store/repository_names.h"

namespace varve::maintain {

namespace {

// Adds the files named `stem` followed by a number.
Result<void> add_kept(io::FileSystem& files, const std::string& folder, std::string_view stem,
                      store::FolderKind kind, std::vector<std::string>& found) {
  VARVE_TRY_ASSIGN(const bool present, files.exists(folder));
  if (!present) return {};
  VARVE_TRY_ASSIGN(auto names, files.list(folder));
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    const bool is_kept = name.find(stem) != std::string::npos && store::known_name(kind, name);
    if (!is_kept) continue;
    found.push_back(fmt::format(
        "{}/{} is of another state of the repository; an earlier repair left it out and kept it: "
        "remove it if nothing of it is needed",
        folder, name));
  }
  return {};
}

using VersionPair = std::pair<ListedVersion, ListedVersion>;

// Returns pairs of a version of `known` and the same sealed version in `catalog`.
Result<std::vector<VersionPair>> same_versions(const std::vector<ListedVersion>& known,
                                               const meta::Env& catalog) {
  VARVE_TRY_ASSIGN(const auto all, list_versions_of(catalog));
  std::map<std::pair<SeriesId, VersionNumber>, const ListedVersion*> by_number;
  for (const auto& version : all) by_number[{version.series, version.number}] = &version;
  std::vector<VersionPair> pairs;
  for (const auto& version : known) {
    const auto its = by_number.find({version.series, version.number});
    if (!version.sealed || its == by_number.end()) continue;
    const auto& other = *its->second;
    if (other.sealed && other.sealed_at == version.sealed_at) pairs.emplace_back(version, other);
  }
  return pairs;
}

}  // namespace

// A catalog with faults may be unreadable in part. The faults of the catalog then determine the
// repair.
Result<void> HistoryRepair::compare(const meta::Env& catalog) {
  auto found = compare_with_files(scope_.files, scope_.codecs.frames(), scope_.path(), catalog);
  VARVE_TRY(refuse_unsupported(found));
  if (found) {
    mixed_ = std::move(found->other);
    later_ = std::move(found->later);
  }
  const auto add = [&](Result<std::vector<MixedFile>> more) -> Result<void> {
    VARVE_TRY(refuse_unsupported(more));
    if (more) std::ranges::move(*more, std::back_inserter(mixed_));
    return {};
  };
  VARVE_TRY(add(find_undeleted(scope_.files, scope_.codecs, scope_.helpers.open_store,
                               scope_.path(), catalog)));
  // With mixed files, the catalog is not only older. A repair then keeps the later files of all
  // series under other names, too: the next repair would find nothing but them.
  if (!mixed_.empty()) VARVE_TRY(add(std::exchange(later_, {})));
  // An older catalog expects chunks in the files from which the chunks have been moved, too.
  if (found && later_.empty()) {
    VARVE_TRY(add(find_displaced(scope_.files, scope_.codecs, scope_.helpers.open_store,
                                 scope_.path(), catalog)));
  }
  auto listed = list_versions_of(catalog);
  if (listed) listed_ = *std::move(listed);
  if (mixed_.empty() || scope_.options.skip_mixed) return {};
  const auto& first = mixed_.front();
  return mixed_histories(first.versions + " (" + first.path + ")", first.fault);
}

Result<std::optional<std::string>> HistoryRepair::fault_of(const meta::Env& catalog) {
  if (!mixed_.empty()) {
    // All files that make the catalog look older are among the mixed files.
    const auto fits = fits_most_data(
        scope_.codecs, catalog, mixed_,
        [&](SeriesId owner) -> store::SegmentStore& { return scope_.stores.of(owner); });
    if (!fits) return fault_from(fits.error());
    if (*fits) return std::optional<std::string>();
    return std::optional<std::string>("it belongs to another history than most of the data");
  }
  VARVE_TRY_ASSIGN(const auto age,
                   age_of_catalog(scope_.files, scope_.codecs.frames(), scope_.path(), catalog));
  catalog_is_older_ = age.is_older;
  if (!catalog_is_older_) return std::optional<std::string>();
  return std::optional<std::string>("it is older than the rest of the repository");
}

bool HistoryRepair::is_mixed(const std::string& path) const {
  return std::ranges::any_of(mixed_, [&](const MixedFile& file) { return file.path == path; });
}

// The next opening writes the files again from the catalog.
Result<void> HistoryRepair::put_mixed_away(RepairReport& report) const {
  return put_files_away(mixed_, "another history", report);
}

Result<void> HistoryRepair::put_files_away(const std::vector<MixedFile>& files, const char* of,
                                           RepairReport& report) const {
  for (const auto& file : files) {
    if (file.is_data) {
      report.problems.push_back(
          fmt::format("{} of {} ({}): {}", file.versions, of, file.path, file.fault));
      continue;
    }
    VARVE_TRY_ASSIGN(const auto name, rename_to_free_name(scope_.files, file.path));
    VARVE_TRY(scope_.files.sync_directory(file.path.substr(0, file.path.rfind('/'))));
    report.problems.push_back(fmt::format("{} of {} ({}): {}; the file is kept as {}",
                                          file.versions, of, file.path, file.fault, name));
  }
  return {};
}

// An early interruption of a copy leaves newer labels beside an older catalog and the catalog's
// data. The newer labels may count versions as deleted although the folder has the data of no other
// versions.
Result<bool> HistoryRepair::lacks_later_state(const meta::Env& rebuilt, bool with_data) const {
  if (!catalog_is_older_) return false;
  VARVE_TRY_ASSIGN(const auto state, judge_later_state(rebuilt, listed_, with_data));
  if (state.hollow.empty()) return false;
  if (scope_.options.skip_mixed) return !state.any_usable;
  return mixed_histories(state.hollow,
                         "labels or manifests of a later state than the catalog "
                         "name this version, but " +
                             state.fault);
}

Result<void> HistoryRepair::put_later_state_away(const meta::Env& rebuilt,
                                                 RepairReport& report) const {
  VARVE_TRY_ASSIGN(const auto pairs, same_versions(listed_, rebuilt));
  for (const auto& [own, later] : pairs) {
    if (own.name != later.name) {
      report.notes.push_back(own.name + " of the catalog has the name " + later.name +
                             " in the later state");
    }
    if (own.locked_until >= later.locked_until) continue;
    report.problems.push_back(
        fmt::format("{}: in the later state, it is locked until {}; the "
                    "catalog lacks this lock, so lock it again",
                    own.name, base::local_time_text(later.locked_until)));
  }
  report.notes.push_back(scope_.path() +
                         "/catalog stays, because the folder lacks most of what the later state "
                         "needs");
  report.catalog_stays = true;
  return put_files_away(later_, "a later state", report);
}

Result<void> HistoryRepair::name_missing(const meta::Env& fresh, RepairReport& report) const {
  VARVE_TRY_ASSIGN(const auto pairs, same_versions(listed_, fresh));
  for (const auto& [old, now] : pairs) {
    if (old.name == now.name) continue;
    report.notes.push_back(old.name + " of the old catalog has the name " + now.name + " now");
  }
  VARVE_TRY_ASSIGN(const auto missing, missing_in(fresh, listed_));
  for (const auto& version : missing) {
    const auto is_about = [&](const std::string& text) {
      return text.starts_with(version.name + " ") || text.starts_with(version.name + ":");
    };
    if (std::ranges::any_of(report.problems, is_about)) continue;
    if (!mixed_.empty()) {
      report.problems.push_back(version.name +
                                " as the old catalog lists it: most of the data belongs to another "
                                "history");
    } else if (!catalog_is_older_ && version.sealed) {
      report.problems.push_back(version.name + ": the old catalog lists it, and the labels do not");
    } else if (!std::ranges::any_of(report.notes, is_about)) {
      report.notes.push_back(version.name +
                             " is only in the old catalog; it was deleted since, as far as the "
                             "rest of the repository tells");
    }
  }
  return {};
}

Result<std::vector<std::string>> find_left_out(io::FileSystem& files,
                                               const store::RepositoryPaths& paths) {
  std::vector<std::string> left_out;
  VARVE_TRY(
      add_kept(files, paths.root(), "catalog.mixed-", store::FolderKind::kRepository, left_out));
  VARVE_TRY_ASSIGN(const auto folders, series_folders(files, paths.root()));
  for (const auto series : folders) {
    const auto folder = paths.series(series);
    VARVE_TRY(add_kept(files, folder, "labels.damaged-", store::FolderKind::kSeries, left_out));
    VARVE_TRY(add_kept(files, folder + "/" + kManifestFolder, ".man.damaged-",
                       store::FolderKind::kManifests, left_out));
  }
  return left_out;
}

}  // namespace varve::maintain
