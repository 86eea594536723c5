// SPDX-License-Identifier: Apache-2.0
#include "maintain/repairer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/system_error.h"
#include "catalog/sequence_record.h"
#include "catalog/series_catalog.h"
#include "format/beside.h"
#include "io/posix_file_system.h"
#include "maintain/catalog_age.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/checker.h"
#include "maintain/deletion_notes.h"
#include "maintain/lost_objects.h"
#include "maintain/manifest_file.h"
#include "maintain/open_version_fault.h"
#include "maintain/owners.h"
#include "meta/page_check.h"
#include "meta/probe.h"
#include "meta/schema.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"

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

Repairer::Repairer(const std::string& path, const RepairOptions& options,
                   std::unique_ptr<io::WatchedFileSystem> files, RepairHelpers helpers)
    : path_(path),
      options_(options),
      watch_(*files),
      helpers_(std::move(helpers)),
      outside_(io::make_posix_file_system()) {
  files_ = std::move(files);
}

void Repairer::step(RepairStep::Kind kind, std::string where, std::string what) {
  steps_.push_back({kind, std::move(where), std::move(what)});
}

Result<std::unique_ptr<Repair>> Repairer::plan(const std::string& path,
                                               const RepairOptions& options,
                                               std::unique_ptr<io::FileSystem> files,
                                               bool scan_only, const Progress& progress,
                                               const RepairHelpers& helpers) {
  VARVE_TRY(store::check_folders(*files, path));
  std::unique_ptr<Repairer> repairer(new Repairer(
      path, options, std::make_unique<io::WatchedFileSystem>(std::move(files)), helpers));
  const auto scanned = repairer->scan(scan_only, progress);
  VARVE_TRY(repairer->watch_.conclusive());
  if (!scanned) return scanned.error();
  return std::unique_ptr<Repair>(std::move(repairer));
}

Result<void> Repairer::scan(bool scan_only, const Progress& progress) {
  VARVE_TRY(scan_superblock());
  if (!scan_only) VARVE_TRY(lock());
  VARVE_TRY(scan_catalog());
  VARVE_TRY(scan_left_out());
  VARVE_TRY(compare_sequence(helpers_.compare_sequence));
  if (catalog_lost_) {
    VARVE_TRY(check_superblock());
    // Needed even without read_data: a writer frees the files not listed by the new catalog.
    return scan_parity(progress);
  }
  VARVE_TRY(open_catalog());
  if (options_.trust_catalog) VARVE_TRY(compare_histories(*catalog_));
  VARVE_TRY(scan_key_counter());
  VARVE_TRY(scan_open_versions());
  VARVE_TRY(scan_manifests());
  VARVE_TRY(scan_beside());
  VARVE_TRY(scan_derived(helpers_.find_derived));
  VARVE_TRY(scan_aliases());
  if (options_.read_data) VARVE_TRY(scan_data(progress));
  // Last: a refused repair leaves the note. A rebuild removes the note once nothing refuses it.
  return scan_only ? Result<void>() : remove_settled();
}

Result<void> Repairer::lock() {
  auto locked = files_->lock(path_ + "/lock");
  if (locked) {
    lock_ = std::move(*locked);
    return {};
  }
  if (locked.error().code() != ErrorCode::kLocked) return std::move(locked).error();
  return Error(ErrorCode::kLocked,
               path_ + " is in use by another process: unmount it, then repair it");
}

Result<void> Repairer::remove_settled() {
  const auto removed = files_->remove(store::RepositoryPaths(path_).settled());
  if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed.error();
  return removed ? files_->sync_directory(path_) : Result<void>();
}

// The repair of an older state would write to the repository, and the next use would still refuse
// the repository.
Result<void> Repairer::compare_sequence(const CompareSequence& compare) {
  if (!encrypted_ || options_.accept_older) return {};
  auto same = compare(encrypted_->repository_id, [this] { return present_sequence(); });
  if (same) return {};
  return std::move(same).error().with_more(
      ". The repair changed nothing, and cannot bring newer versions back. If parts of the "
      "repository are damaged, `varve repair --accept-older` repairs what is left");
}

Result<std::uint64_t> Repairer::present_sequence() {
  if (!catalog_lost_) {
    VARVE_TRY_ASSIGN(const auto env,
                     meta::Env::open(*files_, path_ + "/catalog", catalog_options(true)));
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(env));
    return catalog::find_sequence(txn);
  }
  std::uint64_t highest = 0;  // The highest number in the new catalog.
  VARVE_TRY_ASSIGN(const auto folders, series_folders(*files_, path_));
  for (const auto series : folders) {
    const auto labels = read_labels(*files_, codecs_->frames(),
                                    store::RepositoryPaths(path_).series(series), series);
    if (labels) highest = std::max(highest, labels->sequence());
  }
  return highest;
}

Result<std::optional<std::string>> Repairer::fault_of_catalog() {
  const auto catalog_path = path_ + "/catalog";
  VARVE_TRY_ASSIGN(const bool present, files_->exists(catalog_path + "/data.mdb"));
  if (!present) return std::optional<std::string>("it is missing");
  const auto options = catalog_options(true);
  // Temporary errors are no fault of the catalog.
  const auto fault_of = [](const Error& error) -> Result<std::optional<std::string>> {
    if (!base::is_damage(error)) return error;
    return std::optional(error.message());
  };
  const auto files = meta::EnvFiles::open(*files_, catalog_path, options);
  if (!files) return fault_of(files.error());
  // Pages that LMDB can read but not write to are a fault, too. Without the lock, a writer may be
  // active; faults_in() then checks the pages.
  const auto probed =
      lock_ ? meta::check_pages(*files, options.tables) : meta::probe_environment(*files, options);
  if (!probed) return fault_of(probed.error());
  const auto env = meta::Env::open(*files, options);
  if (!env) return fault_of(env.error());
  VARVE_TRY(compare_histories(*env));
  std::optional<std::string> fault;
  if (!mixed_.empty()) {
    // All files that make the catalog look older are among the mixed files.
    const auto fits =
        fits_most_data(*codecs_, *env, mixed_,
                       [&](SeriesId owner) -> store::SegmentStore& { return store_of(owner); });
    if (!fits) return fault_of(fits.error());
    if (!*fits) fault = "it belongs to another history than most of the data";
  } else {
    VARVE_TRY_ASSIGN(const auto age, age_of_catalog(*files_, codecs_->frames(), path_, *env));
    catalog_is_older_ = age.is_older;
    if (catalog_is_older_) fault = "it is older than the rest of the repository";
  }
  if (fault) return fault;
  auto faults = faults_in(*env);
  VARVE_TRY(refuse_unsupported(faults));
  if (!faults) return fault_of(faults.error());
  faults_ = std::move(faults->faults);
  if (faults_.empty()) lost_parts_ = std::move(faults->lost_parts);
  return faults_.empty() ? fault : std::optional(faults_.front());
}

Result<Repairer::CatalogFaults> Repairer::faults_in(const meta::Env& catalog) {
  CheckOptions how;
  how.read_data = false;
  CheckHelpers helpers;  // An index is not the catalog.
  helpers.open_store = helpers_.open_store;
  Checker checker(*codecs_, catalog, *files_, path_, how, {}, helpers);
  VARVE_TRY_ASSIGN(const auto report, checker.run());
  VARVE_TRY_ASSIGN(const auto lost, find_lost_objects(*files_, codecs_->frames(), path_, catalog,
                                                      checker.broken_objects()));
  CatalogFaults found;
  for (std::size_t i = 0; i < report.damages.size(); ++i) {
    const auto& damage = report.damages[i];
    if (damage.where != path_ + "/catalog") continue;
    if (std::ranges::find(lost, i, &BrokenObject::report_index) != lost.end()) {
      found.lost_parts.push_back(describe_lost_object(damage));
      continue;
    }
    found.faults.push_back(damage.what);
    for (const auto& name : damage.affected) found.faults.back() += "; " + name;
  }
  return found;
}

Result<void> Repairer::scan_catalog() {
  std::optional<std::string> fault;
  if (!options_.trust_catalog) {
    VARVE_TRY_ASSIGN(fault, fault_of_catalog());
  }
  if (!fault && options_.rebuild_catalog) fault = "a rebuild was requested";
  if (!fault) return {};
  catalog_lost_ = true;
  step(RepairStep::Kind::kCatalog, path_ + "/catalog",
       *fault + "; the repair builds a new catalog from manifests and containers");
  return {};
}

// Plans the removal of damaged manifests. The next opening writes new manifests from the catalog.
Result<void> Repairer::scan_manifests() {
  for (const auto& file : mixed_) {
    if (file.is_data) continue;
    step(RepairStep::Kind::kManifest, file.path,
         fmt::format("{}: {}; the repair keeps the file under another name, and writes it again "
                     "from the catalog",
                     file.versions, file.fault));
  }
  VARVE_TRY_ASSIGN(const auto folders, series_folders(*files_, path_));
  for (const auto series : folders) {
    const auto directory = store::RepositoryPaths(path_).series(series);
    const auto drop = [&](const std::string& path) {
      step(RepairStep::Kind::kManifest, path,
           "it is damaged; the repair writes it again from the catalog");
      manifests_.push_back(path);
    };
    VARVE_TRY_ASSIGN(const auto present, list_manifests(*files_, directory));
    bool any = false;
    for (const auto& file : present) {
      const auto path = manifest_path(directory, file.number);
      any = any || is_mixed(path);
      if (is_mixed(path)) continue;
      const auto state =
          state_of_manifest(*files_, codecs_->frames(), path, *catalog_, series, file.number);
      if (state && state->fault.empty()) continue;
      VARVE_TRY(refuse_unsupported(state));
      drop(path);
      any = true;
    }
    if (is_mixed(directory + "/" + kLabelsName)) continue;
    // Without labels, the next opening also looks for objects of deleted versions.
    const auto labels = read_labels(*files_, codecs_->frames(), directory, series);
    VARVE_TRY(refuse_unsupported(labels));
    const bool damaged = !labels && labels.error().code() != ErrorCode::kNotFound;
    if (damaged) drop(directory + "/" + kLabelsName);
    VARVE_TRY_ASSIGN(const bool lacking, lacks_changes(series, labels));
    if (lacking) {
      VARVE_TRY_ASSIGN(const auto deleted, deleted_versions(*catalog_, series, *labels));
      step(RepairStep::Kind::kManifest, directory + "/" + kLabelsName,
           "the labels lack changes that the catalog has; the repair writes them again from the "
           "catalog" +
               (deleted.empty() ? std::string()
                                : ". Only the labels list " + deleted +
                                      ", which count as deleted; if the catalog is of another "
                                      "copy, complete that copy first"));
      manifests_.push_back(directory + "/" + kLabelsName);
    }
    if (any && labels) manifests_.push_back(directory + "/" + kLabelsName);
  }
  return {};
}

// A writer without the lock may be between a commit and the write of the labels.
Result<bool> Repairer::lacks_changes(SeriesId series, const Result<Labels>& labels) {
  if (!labels || !lock_) return false;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
  VARVE_TRY_ASSIGN(const auto record, catalog::find_series(txn, series));
  if (!record) return false;  // A crash left the folder of a removed series.
  VARVE_TRY_ASSIGN(const bool agree, sealed_labels_agree(txn, series, *labels));
  return labels->torn || !agree;
}

// No copy of the files beside versions exists, so the repair keeps the damaged file.
Result<void> Repairer::scan_beside() {
  VARVE_TRY_ASSIGN(const auto folders, series_folders(*files_, path_));
  for (const auto series : folders) {
    const auto path =
        fmt::format("{}/{}", store::RepositoryPaths(path_).series(series), store::kBesideName);
    const auto bytes = files_->read_file(path, format::kBesideImageBytesMax);
    if (!bytes && bytes.error().code() == ErrorCode::kNotFound) continue;
    const auto image = bytes ? format::decode_beside(series, *bytes) : bytes.error();
    if (image) continue;
    VARVE_TRY(refuse_unsupported(image));
    step(RepairStep::Kind::kBeside, path,
         image.error().message() +
             "; no version is touched. The repair renames the file, and the series begins without "
             "the programs' files in it");
    beside_.push_back(series);
  }
  return {};
}

Result<void> Repairer::scan_derived(const FindDerivedFaults& find) {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
    VARVE_TRY_ASSIGN(const auto notes, find_damaged_notes(txn));
    for (const auto& note : notes) {
      step(RepairStep::Kind::kDerived, path_ + "/catalog",
           "the note of the last deletion in the series " + note.name +
               " is damaged; the repair removes the note. No version is touched");
    }
  }
  VARVE_TRY_ASSIGN(const auto faults, find(*files_, path_, DerivedFiles::kAll));
  for (const auto& fault : faults) {
    // Errors other than damage may be temporary, such as missing rights.
    watch_.note(fault.error);
    if (!base::is_damage(fault.error)) continue;
    step(RepairStep::Kind::kDerived, fault.path,
         fault.error.message() +
             "; the repair removes it, and the next backup builds it again. No version is touched");
    derived_.push_back(fault.path);
    if (!fault.dependent.empty()) derived_.push_back(fault.dependent);
  }
  return {};
}

Result<void> Repairer::put_beside_away(RepairReport& report) {
  for (const auto series : beside_) {
    const auto folder = store::RepositoryPaths(path_).series(series);
    VARVE_TRY_ASSIGN(const auto name,
                     rename_to_free_name(fmt::format("{}/{}", folder, store::kBesideName)));
    VARVE_TRY(files_->sync_directory(folder));
    report.problems.push_back("the programs' files beside the versions, which are kept as " + name);
  }
  return {};
}

Result<void> Repairer::open_catalog() {
  VARVE_TRY_ASSIGN(auto opened,
                   meta::Env::open(*files_, path_ + "/catalog", catalog_options(!lock_)));
  catalog_.emplace(std::move(opened));
  return {};
}

Result<void> Repairer::scan_open_versions() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
    for (const auto& record : records) {
      VARVE_TRY_ASSIGN(const auto fault,
                       fault_of_open_version(*files_, path_, txn, record, lock_ != nullptr));
      if (!fault) continue;
      step(RepairStep::Kind::kOpenVersion, path_ + "/staging",
           series.name + "/" + record.name + " was open, and " + *fault + "; the repair drops it");
      lost_versions_.push_back(record);
    }
  }
  VARVE_TRY_ASSIGN(const auto losses, find_open_losses({*files_, path_, *catalog_, codecs_->keys()},
                                                       helpers_.find_unstored, lock_ != nullptr));
  for (const auto& loss : losses) lost_parts_.push_back(describe_open_loss(loss));
  return {};
}

// The next write to the series frees the versions' chunks, as after a crash.
Result<void> Repairer::drop_open_versions(RepairReport& report) {
  if (lost_versions_.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*catalog_));
  for (const auto& record : lost_versions_) {
    VARVE_TRY(catalog::erase_version(txn, record.series, record.number));
    report.problems.push_back("the open version " + record.name);
  }
  return txn.commit();
}

Result<RepairReport> Repairer::execute(const Progress& progress) {
  RepairReport report;
  const auto repaired = repair(progress, report);
  VARVE_TRY(watch_.conclusive());
  if (!repaired) return repaired.error();
  return report;
}

Result<void> Repairer::repair(const Progress& progress, RepairReport& report) {
  if (catalog_lost_) VARVE_TRY(try_rebuild(progress));
  if (superblock_lost_) {
    const auto text =
        encrypted_ ? format::encode_superblock(*encrypted_, codecs_->keys().get()) : superblock_;
    VARVE_TRY(files_->write_file_atomically(path_, "varve.repo", base::as_bytes(text)));
  }
  VARVE_TRY(restore_from_parity(progress, report));
  if (catalog_lost_) {
    VARVE_TRY(rebuild_catalog(progress, report));
  } else {
    VARVE_TRY(drop_open_versions(report));
    VARVE_TRY(repair_data(report));
    VARVE_TRY(put_beside_away(report));
    if (aliases_lost_) VARVE_TRY(write_aliases());
    VARVE_TRY(put_files_away(mixed_, "another history", report));
    VARVE_TRY(remove_files(manifests_));
    VARVE_TRY(remove_files(derived_));
    VARVE_TRY(erase_damaged_notes(*catalog_));
  }
  return {};
}

Result<void> Repairer::remove_files(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    const auto removed = files_->remove(path);
    if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed.error();
  }
  return {};
}

}  // namespace varve::maintain
