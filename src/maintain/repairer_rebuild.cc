// SPDX-License-Identifier: Apache-2.0
// Builds a new catalog to replace the old catalog.
#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "maintain/catalog_rebuilder.h"
#include "maintain/lost_objects.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"
#include "maintain/repairer.h"
#include "meta/schema.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"

namespace varve::maintain {

namespace {

constexpr const char* kNewCatalog = "/catalog.new";

void add_all(const std::vector<std::string>& texts, std::vector<std::string>& to) {
  to.insert(to.end(), texts.begin(), texts.end());
}

// Copies a file beside itself, under a free name.
Result<void> copy_aside(io::FileSystem& files, const std::string& path, RepairReport& report) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::string copy;
  bool taken = true;
  for (int i = 1; taken; ++i) {
    copy = fmt::format("{}.damaged-{}", path, i);
    VARVE_TRY_ASSIGN(taken, files.exists(copy));
  }
  VARVE_TRY_ASSIGN(const auto from, files.open(path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(const auto to, files.open(copy, io::OpenMode::kReadWrite));
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t at = 0;;) {
    VARVE_TRY_ASSIGN(const auto got, from->read_at(at, piece));
    if (got == 0) break;
    VARVE_TRY(to->write_at(at, std::span(piece).first(got)));
    at += got;
  }
  VARVE_TRY(to->sync());
  VARVE_TRY(files.sync_directory(path.substr(0, path.rfind('/'))));
  report.problems.push_back("the manifest of a version that was left out is kept as " + copy);
  return {};
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

meta::EnvOptions Repairer::catalog_options(bool read_only) const {
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.optional_tables = meta::catalog::kTablesOptional;
  options.read_only = read_only;
  options.must_exist = read_only;
  // A reader of a catalog looks at the lock, unless the calling process holds the lock.
  if (!read_only || !lock_) options.writer_lock = path_ + "/lock";
  options.keys.ring = codecs_->keys();
  return options;
}

Result<std::string> Repairer::make_fresh_folder() {
  const auto fresh = path_ + kNewCatalog;
  // An interrupted attempt may have left the folder.
  VARVE_TRY(store::remove_folder(*files_, fresh, store::FolderKind::kEnvironment));
  VARVE_TRY(files_->make_directory(fresh));
  return fresh;
}

Result<void> Repairer::try_rebuild(const Progress& progress) {
  const bool has_earlier_steps = superblock_lost_ || !parity_repairers_.empty();
  if (options_.skip_mixed || !has_earlier_steps) return {};
  VARVE_TRY_ASSIGN(const auto fresh, make_fresh_folder());
  Result<void> tried;
  {
    VARVE_TRY_ASSIGN(const auto env, meta::Env::open(*files_, fresh, catalog_options(false)));
    RebuildChoices choices;
    choices.listed = listed_;
    choices.found = FoundBySearch::kLeave;  // Parity may restore the damaged headers.
    CheckProgress done;
    VARVE_TRY_ASSIGN(const auto in_place, open_in_place(!listed_.empty() && mixed_.empty(), *files_,
                                                        path_ + "/catalog", catalog_options(true)));
    choices.in_place = in_place ? &*in_place : nullptr;
    CatalogRebuilder trial(*codecs_, *files_, helpers_.open_store, path_, env, choices,
                           [&](std::uint64_t bytes) {
                             done.bytes_done += bytes;
                             if (progress) progress(done);
                           });
    const auto built = trial.run();
    const auto judged = built ? lacks_later_state(env, parity_repairers_.empty()) : built.error();
    if (!judged && judged.error().code() == ErrorCode::kInvalid) tried = judged.error();
  }
  VARVE_TRY(store::remove_folder(*files_, fresh, store::FolderKind::kEnvironment));
  return tried;
}

// Follows docs/ORDERING.md O23.
Result<void> Repairer::rebuild_catalog(const Progress& progress, RepairReport& report) {
  VARVE_TRY_ASSIGN(const auto fresh, make_fresh_folder());
  CheckProgress done;
  std::vector<std::string> left_out;
  const store::RepositoryPaths paths(path_);
  VARVE_TRY_ASSIGN(const auto owners, owner_folders(*files_, paths));
  for (const auto owner : owners) {
    VARVE_TRY_ASSIGN(const auto bytes, files_->tree_bytes(owner_folder(paths, owner)));
    done.bytes_total += bytes;
  }
  {
    VARVE_TRY_ASSIGN(const auto env, meta::Env::open(*files_, fresh, catalog_options(false)));
    RebuildChoices choices;
    choices.skip_mixed = options_.skip_mixed;
    choices.listed = listed_;
    if (options_.take_found) {
      choices.found = *options_.take_found ? FoundBySearch::kTake : FoundBySearch::kLeave;
    }
    VARVE_TRY_ASSIGN(const auto in_place, open_in_place(!listed_.empty() && mixed_.empty(), *files_,
                                                        path_ + "/catalog", catalog_options(true)));
    choices.in_place = in_place ? &*in_place : nullptr;
    CatalogRebuilder rebuilder(*codecs_, *files_, helpers_.open_store, path_, env, choices,
                               [&](std::uint64_t bytes) {
                                 done.bytes_done += bytes;
                                 if (progress) progress(done);
                               });
    auto built = rebuilder.run();
    const auto stays = built ? lacks_later_state(env, true) : built.error();
    if (stays) VARVE_TRY(remove_settled());
    if (!stays || *stays) {
      if (stays) VARVE_TRY(put_later_state_away(env, report));
      VARVE_TRY(store::remove_folder(*files_, fresh, store::FolderKind::kEnvironment));
      // If the repair stops, the folder remains unchanged.
      return stays ? Result<void>() : stays.error();
    }
    report.versions = built->versions;
    report.bytes_read += built->bytes_read;
    report.problems = std::move(built->problems);
    report.notes = std::move(built->notes);
    left_out = std::move(built->left_out);
    for (const auto& path : built->left_out_in_use) VARVE_TRY(copy_aside(*files_, path, report));
    // Data without a manifest stays lost. If the new catalog has the same faults, keep the old
    // catalog with the catalog's labels.
    const auto faults = faults_in(env);
    // After a read error, the rebuilt catalog lacks more than the lost data.
    VARVE_TRY(watch_.conclusive());
    const bool is_same = !faults_.empty() && faults && faults->faults == faults_;
    if (!options_.rebuild_catalog && mixed_.empty() && is_same) {
      report.versions = 0;
      if (report.problems.empty()) report.problems = faults_;
      add_all(faults->lost_parts, report.problems);
      return store::remove_folder(*files_, fresh, store::FolderKind::kEnvironment);
    }
    if (faults) add_all(faults->lost_parts, report.problems);
    if (faults && !faults->lost_parts.empty()) VARVE_TRY(mark_lost_trees(env));
    VARVE_TRY_ASSIGN(const auto losses, find_open_losses({*files_, path_, env, codecs_->keys()},
                                                         helpers_.find_unstored, true));
    for (const auto& loss : losses) report.problems.push_back(describe_open_loss(loss));
    VARVE_TRY(name_missing(env, report));
    for (const auto series : built->other_labels) VARVE_TRY(copy_labels(series, report));
    VARVE_TRY_ASSIGN(const auto labels, rebuilder.labels(superblock_));
    for (const auto& [series, image] : labels) {
      VARVE_TRY(write_labels(*files_, paths.series(series), image));
    }
  }
  VARVE_TRY(files_->sync_directory(fresh));
  VARVE_TRY_ASSIGN(report.old_catalog, put_old_catalog_away());
  if (!mixed_.empty()) {
    report.problems.push_back("the catalog of another history is kept as " + report.old_catalog);
  }
  VARVE_TRY(files_->rename(fresh, path_ + "/catalog"));
  VARVE_TRY(files_->sync_directory(path_));
  for (const auto& path : left_out) {
    VARVE_TRY_ASSIGN(const auto name, rename_to_free_name(path));
    report.problems.push_back("the manifest of a version that was left out is kept as " + name);
  }
  return {};
}

Result<std::string> Repairer::put_old_catalog_away() {
  const auto catalog_path = path_ + "/catalog";
  VARVE_TRY_ASSIGN(const bool present, files_->exists(catalog_path));
  if (!present) return std::string();
  VARVE_TRY_ASSIGN(const bool any, files_->exists(catalog_path + "/data.mdb"));
  if (!any) {
    VARVE_TRY(store::remove_folder(*files_, catalog_path, store::FolderKind::kEnvironment));
    // A foreign file prevents the removal of the folder, which then gets another name.
    VARVE_TRY_ASSIGN(const bool kept, files_->exists(catalog_path));
    if (!kept) return std::string();
  }
  if (mixed_.empty()) return rename_to_free_name(catalog_path);
  VARVE_TRY_ASSIGN(auto name, free_name(catalog_path + ".mixed"));
  VARVE_TRY(files_->rename(catalog_path, name));
  return name;
}

Result<std::string> Repairer::free_name(const std::string& stem) const {
  for (int i = 1;; ++i) {
    auto name = fmt::format("{}-{}", stem, i);
    VARVE_TRY_ASSIGN(const bool taken, files_->exists(name));
    if (!taken) return name;
  }
}

// Returns the new path.
Result<std::string> Repairer::rename_to_free_name(const std::string& path) {
  VARVE_TRY_ASSIGN(auto name, free_name(path + ".damaged"));
  VARVE_TRY(files_->rename(path, name));
  return name;
}

}  // namespace varve::maintain
