// SPDX-License-Identifier: Apache-2.0
#include "maintain/repairer.h"

#include <algorithm>
#include <utility>

#include "catalog/sequence_record.h"
#include "maintain/catalog_faults.h"
#include "maintain/catalog_replacer.h"
#include "maintain/manifest_file.h"
#include "meta/page_check.h"
#include "meta/probe.h"
#include "store/repository_names.h"
#include "store/sealed_places.h"

namespace varve::maintain {

namespace {

Result<std::unique_ptr<io::FileLock>> lock_for_repair(io::FileSystem& files,
                                                      const std::string& path) {
  auto locked = files.lock(path + "/lock");
  if (locked || locked.error().code() != ErrorCode::kLocked) return locked;
  return Error(ErrorCode::kLocked,
               path + " is in use by another process: unmount it, then repair it");
}

}  // namespace

Repairer::Repairer(const std::string& path, const RepairOptions& options,
                   std::unique_ptr<io::FileSystem> files, io::WatchedFileSystem& watch,
                   SuperblockRepair superblock, RepairHelpers helpers,
                   std::unique_ptr<io::FileLock> lock)
    : options_(options),
      helpers_(std::move(helpers)),
      files_(std::move(files)),
      lock_(std::move(lock)),
      superblock_(std::move(superblock)),
      codecs_(superblock_.parameters(), superblock_.keys()),
      stores_(helpers_.open_store, *files_, path),
      steps_(superblock_.steps()),
      scope_{codecs_,          *files_,  watch,       store::RepositoryPaths(path),
             options_,         helpers_, superblock_, stores_,
             lock_ != nullptr, steps_},
      histories_(scope_),
      data_(scope_),
      series_files_(scope_),
      aliases_(scope_),
      open_versions_(scope_) {}

Result<std::unique_ptr<Repair>> Repairer::plan(const std::string& path,
                                               const RepairOptions& options,
                                               std::unique_ptr<io::FileSystem> files,
                                               bool scan_only, const Progress& progress,
                                               const RepairHelpers& helpers) {
  VARVE_TRY(store::check_folders(*files, path));
  auto watched = std::make_unique<io::WatchedFileSystem>(std::move(files));
  auto& watch = *watched;
  const auto conclude = [&watch](const Error& error) {
    const auto conclusive = watch.conclusive();
    return conclusive ? error : conclusive.error();
  };
  auto superblock = SuperblockRepair::scan(watch, path, options);
  if (!superblock) return conclude(superblock.error());
  auto sealed = store::seal_files(std::move(watched), superblock->keys(), path);
  std::unique_ptr<io::FileLock> lock;
  if (!scan_only) {
    auto locked = lock_for_repair(*sealed, path);
    if (!locked) return conclude(locked.error());
    lock = *std::move(locked);
  }
  std::unique_ptr<Repairer> repairer(new Repairer(
      path, options, std::move(sealed), watch, *std::move(superblock), helpers, std::move(lock)));
  const auto scanned = repairer->scan(progress);
  VARVE_TRY(watch.conclusive());
  if (!scanned) return scanned.error();
  return std::unique_ptr<Repair>(std::move(repairer));
}

Result<void> Repairer::scan(const Progress& progress) {
  VARVE_TRY(scan_catalog());
  VARVE_TRY_ASSIGN(left_out_, find_left_out(scope_.files, scope_.paths));
  VARVE_TRY(compare_sequence());
  if (catalog_lost_) {
    VARVE_TRY(superblock_.check(scope_.files, codecs_.frames(), options_.trust_owner));
    // Needed even without read_data: a writer frees the files not listed by the new catalog.
    return data_.scan_without_catalog(progress);
  }
  VARVE_TRY(open_catalog());
  if (options_.trust_catalog) VARVE_TRY(histories_.compare(*catalog_));
  VARVE_TRY(superblock_.scan_key_counter(*catalog_, steps_));
  VARVE_TRY(open_versions_.scan(*catalog_, lost_parts_));
  VARVE_TRY(series_files_.scan_manifests(*catalog_, histories_));
  VARVE_TRY(series_files_.scan_beside());
  VARVE_TRY(series_files_.scan_derived(*catalog_));
  VARVE_TRY(aliases_.scan(*catalog_));
  if (options_.read_data) VARVE_TRY(data_.scan(*catalog_, progress));
  // Last: a refused repair leaves the note. A rebuild removes the note once nothing refuses it.
  return scope_.has_lock ? scope_.remove_settled() : Result<void>();
}

// The repair of an older state would write to the repository, and the next use would still refuse
// the repository.
Result<void> Repairer::compare_sequence() const {
  const auto& encrypted = superblock_.encrypted();
  if (!encrypted || options_.accept_older) return {};
  auto same =
      helpers_.compare_sequence(encrypted->repository_id, [this] { return present_sequence(); });
  if (same) return {};
  return std::move(same).error().with_more(
      ". The repair changed nothing, and cannot bring newer versions back. If parts of the "
      "repository are damaged, `varve repair --accept-older` repairs what is left");
}

Result<std::uint64_t> Repairer::present_sequence() const {
  if (!catalog_lost_) {
    VARVE_TRY_ASSIGN(const auto env, meta::Env::open(scope_.files, scope_.catalog_path(),
                                                     scope_.catalog_options(true)));
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(env));
    return catalog::find_sequence(txn);
  }
  std::uint64_t highest = 0;  // The highest number in the new catalog.
  VARVE_TRY_ASSIGN(const auto folders, series_folders(scope_.files, scope_.path()));
  for (const auto series : folders) {
    const auto labels =
        read_labels(scope_.files, scope_.codecs.frames(), scope_.paths.series(series), series);
    if (labels) highest = std::max(highest, labels->sequence());
  }
  return highest;
}

Result<std::optional<std::string>> Repairer::fault_of_catalog() {
  const auto catalog_path = scope_.catalog_path();
  VARVE_TRY_ASSIGN(const bool present, scope_.files.exists(catalog_path + "/data.mdb"));
  if (!present) return std::optional<std::string>("it is missing");
  const auto options = scope_.catalog_options(true);
  const auto files = meta::EnvFiles::open(scope_.files, catalog_path, options);
  if (!files) return fault_from(files.error());
  // Pages that LMDB can read but not write to are a fault, too. Without the lock, a writer may be
  // active; find_catalog_faults() then checks the pages.
  const auto probed = scope_.has_lock ? meta::check_pages(*files, options.tables)
                                      : meta::probe_environment(*files, options);
  if (!probed) return fault_from(probed.error());
  const auto env = meta::Env::open(*files, options);
  if (!env) return fault_from(env.error());
  VARVE_TRY(histories_.compare(*env));
  VARVE_TRY_ASSIGN(auto fault, histories_.fault_of(*env));
  if (fault) return fault;
  auto faults = find_catalog_faults(scope_, *env);
  VARVE_TRY(refuse_unsupported(faults));
  if (!faults) return fault_from(faults.error());
  faults_ = std::move(faults->faults);
  if (faults_.empty()) lost_parts_ = std::move(faults->lost_parts);
  return faults_.empty() ? fault : std::optional(faults_.front());
}

Result<void> Repairer::scan_catalog() {
  std::optional<std::string> fault;
  if (!scope_.options.trust_catalog) {
    VARVE_TRY_ASSIGN(fault, fault_of_catalog());
  }
  if (!fault && scope_.options.rebuild_catalog) fault = "a rebuild was requested";
  if (!fault) return {};
  catalog_lost_ = true;
  scope_.add_step(RepairStep::Kind::kCatalog, scope_.catalog_path(),
                  *fault + "; the repair builds a new catalog from manifests and containers");
  return {};
}

Result<void> Repairer::open_catalog() {
  VARVE_TRY_ASSIGN(auto opened, meta::Env::open(scope_.files, scope_.catalog_path(),
                                                scope_.catalog_options(!scope_.has_lock)));
  catalog_.emplace(std::move(opened));
  return {};
}

Result<RepairReport> Repairer::execute(const Progress& progress) {
  RepairReport report;
  const auto repaired = repair(progress, report);
  VARVE_TRY(scope_.watch.conclusive());
  if (!repaired) return repaired.error();
  return report;
}

Result<void> Repairer::repair(const Progress& progress, RepairReport& report) {
  const CatalogReplacer replacer(scope_, histories_, faults_);
  const bool has_earlier_steps = superblock_.is_needed() || data_.restores_from_parity();
  if (catalog_lost_ && has_earlier_steps) {
    VARVE_TRY(replacer.try_rebuild(!data_.restores_from_parity(), progress));
  }
  VARVE_TRY(superblock_.execute(scope_.files));
  VARVE_TRY(data_.restore_from_parity(progress, report));
  if (catalog_lost_) return replacer.replace(progress, report);
  VARVE_TRY(open_versions_.execute(*catalog_, report));
  VARVE_TRY(data_.execute(*catalog_, report));
  VARVE_TRY(series_files_.put_beside_away(report));
  VARVE_TRY(aliases_.execute(*catalog_));
  VARVE_TRY(histories_.put_mixed_away(report));
  VARVE_TRY(series_files_.remove_damaged(*catalog_));
  return series_files_.replace_labels(*catalog_);
}

}  // namespace varve::maintain
