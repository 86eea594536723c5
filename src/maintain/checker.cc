// SPDX-License-Identifier: Apache-2.0
#include "maintain/checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>

#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "format/beside.h"
#include "maintain/manifest_file.h"
#include "maintain/open_version_fault.h"
#include "maintain/owners.h"
#include "maintain/stray_files.h"
#include "maintain/tree_chunks.h"
#include "meta/page_check.h"
#include "meta/schema.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "varve/version_name.h"

namespace varve::maintain {

Checker::Checker(const format::DataCodecs& codecs, const meta::Env& catalog, io::FileSystem& files,
                 std::string repository_path, const CheckOptions& options,
                 std::function<void(const CheckProgress&)> progress, CheckHelpers helpers)
    : codecs_(codecs),
      catalog_(catalog),
      files_(files),
      path_(std::move(repository_path)),
      options_(options),
      progress_(std::move(progress)),
      helpers_(std::move(helpers)),
      choice_(std::random_device()()) {}

std::string Checker::folder_of(SeriesId owner) const {
  return owner_folder(store::RepositoryPaths(path_), owner);
}

store::SegmentStore& Checker::store_of(SeriesId owner) {
  auto& store = stores_[owner];
  if (!store) store = store::open_store(helpers_.open_store, files_, folder_of(owner));
  return *store;
}

void Checker::damage(std::string where, const Error& error, const std::string& advice) {
  files_.note(error);
  damage(std::move(where), error.message() + advice);
}

void Checker::damage(Store& store, std::string where, std::string what,
                     std::vector<base::IdRun> ids) {
  if (!ids.empty())
    store.damaged.push_back({report_.damages.size(), base::IdRuns::from(std::move(ids))});
  damage(std::move(where), std::move(what));
}

void Checker::check_name(const std::string& of, const std::string& fault,
                         const std::string& replacement) {
  if (fault.empty()) return;
  damage(path_ + "/catalog",
         fmt::format("the record of {} has a name that is not allowed ({}); Varve shows it as {}",
                     of, fault, replacement));
}

// An unreadable part of the catalog is damage. A store that does not answer is no damage.
Result<void> Checker::note_fault(const Result<void>& checked) {
  if (checked) return {};
  if (checked.error().code() == ErrorCode::kUnavailable) return checked;
  damage(path_ + "/catalog", checked.error());
  return {};
}

Result<CheckReport> Checker::run() {
  const auto checked = check_all();
  VARVE_TRY(files_.conclusive());
  if (!checked) return checked.error();
  return std::move(report_);
}

Result<void> Checker::check_all() {
  // Finds pages refused by a writer (meta/page_check.h), even if all pages are readable. kBusy
  // means that a writer commits too often for the check of the pages.
  const auto pages = meta::check_pages(catalog_, meta::catalog::kTables);
  if (!pages && pages.error().code() != ErrorCode::kBusy) {
    damage(path_ + "/catalog", pages.error());
  }
  // The storage of an encrypted repository may be hostile, and leaves right checksums.
  const bool sealed = catalog_.seal() != nullptr;
  if (sealed && pages) VARVE_TRY(check_values());
  std::vector<catalog::SeriesRecord> all;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(all, catalog::list_series(txn));
    VARVE_TRY_ASSIGN(const auto owners, owners_in(txn));
    for (const auto owner : owners) {
      VARVE_TRY(catalog::for_each_container(
          txn, catalog::store_of(owner),
          [&](const format::ContainerRecord& record) -> Result<bool> {
            const bool header_only = job_of(owner, record).level == VerifyLevel::kHeader;
            done_.bytes_total += record.header_bytes + (header_only ? 0 : record.data_bytes);
            return true;
          }));
    }
  }
  if (sealed) VARVE_TRY(check_owners(all));
  VARVE_TRY(note_fault(check_pool()));
  for (const auto& series : all) {
    // After a stop, the check still names the files affected by damage of the pool.
    if (!report_.finished && pool_.damaged.empty()) break;
    check_name(fmt::format("series {}", static_cast<std::uint32_t>(series.id)), series.name_fault,
               series.name);
    VARVE_TRY(note_fault(check_series(series)));
  }
  if (report_.finished) {
    if (helpers_.has_open_versions) VARVE_TRY(check_open_losses());
    VARVE_TRY(check_labels(all));
    check_derived();
    note_strays();
  }
  return {};
}

void Checker::note_strays() {
  const auto note = [this](std::string where, std::string what) {
    report_.notes.push_back({std::move(where), std::move(what)});
  };
  note_unknown_files(files_, path_, note);
  note_trailing_bytes(catalog_, files_, helpers_.open_store, path_, note);
}

// Damage to derived files costs only time at the next backup.
void Checker::check_derived() {
  if (!helpers_.derived_faults) return;
  const auto faults = helpers_.derived_faults();
  if (!faults) return damage(path_, faults.error());
  for (const auto& fault : *faults) {
    if (fault.after_power_cut) {
      report_.notes.push_back(
          {fault.path, fault.error.message() +
                           "; a power cut may leave this. The next `varve store` reads every file, "
                           "and `varve repair` removes this one"});
    } else {
      damage(fault.path, fault.error,
             " (derived data: `varve repair` removes it, and the next backup builds it again)");
    }
  }
}

Result<void> Checker::check_series(const catalog::SeriesRecord& series) {
  store_ = Store();
  store_.owner = series.id;
  const bool stopped = !report_.finished;
  std::vector<catalog::VersionRecord> versions;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(versions, catalog::list_versions(txn, series.id));
  }
  for (const auto& version : versions) {
    if (stopped) break;
    check_name(fmt::format("version {} of series {}", static_cast<std::uint32_t>(version.number),
                           static_cast<std::uint32_t>(series.id)),
               version.name_fault, version.name);
  }
  if (!stopped) VARVE_TRY(check_records(store_));
  for (const auto& version : versions) {
    if (!stopped) VARVE_TRY(check_open_version(series, version));
  }
  if (!stopped) VARVE_TRY(check_data(store_));
  if (!report_.finished && store_.damaged.empty() && pool_.damaged.empty()) return {};
  if (report_.finished) {
    check_index(series, versions);
    check_manifests(series, versions);
    check_beside(series.id, versions);
    VARVE_TRY(check_parity(series.id));
  }
  if (report_.finished) VARVE_TRY(check_chunks(series, versions));
  // Also runs after a stop, to name the files affected by the damage.
  auto damaged = pool_.damaged;
  damaged.insert(damaged.end(), store_.damaged.begin(), store_.damaged.end());
  TreeChecker trees(catalog_, series, path_ + "/catalog", damaged, report_);
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) trees.check(version);
  }
  const auto broken = trees.broken();
  broken_.insert(broken_.end(), broken.begin(), broken.end());
  if (report_.finished) VARVE_TRY(check_newest_record(series, versions));
  return {};
}

// Compares the tree of the newest version with the record of the version's chunks. A seal derives
// the record from the record of the version before, and deletions rely on the record.
Result<void> Checker::check_newest_record(const catalog::SeriesRecord& series,
                                          const std::vector<catalog::VersionRecord>& versions) {
  const auto newest = std::find_if(versions.rbegin(), versions.rend(), [](const auto& version) {
    return version.state == VersionState::kSealed;
  });
  if (newest == versions.rend()) return {};
  bool whole = true;  // TreeChecker reports unreadable parts.
  const auto used = tree_chunks(catalog_, series.id, newest->root, whole);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  const auto recorded = catalog::version_chunks(txn, series.id, newest->number);
  if (!recorded) return {};  // Another part of the check reports the record.
  const auto lacking = used.subtract(*recorded);
  // A daemon may have deleted the version meanwhile.
  VARVE_TRY_ASSIGN(const auto still, catalog::find_version(txn, series.id, newest->number));
  if (lacking.size() == 0 || !still) return {};
  damage(path_ + "/catalog",
         fmt::format("{} chunks of {}/{} are not in the record of its chunks; run `varve repair` "
                     "before any version is deleted",
                     lacking.size(), series.name, newest->name));
  return {};
}

Result<void> Checker::check_open_version(const catalog::SeriesRecord& series,
                                         const catalog::VersionRecord& version) {
  if (version.state != VersionState::kOpen || !helpers_.has_open_versions) return {};
  std::optional<std::string> fault;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(fault, fault_of_open_version(files_, path_, txn, version, false));
  }
  if (!fault && catalog_.seal() != nullptr && helpers_.read_staged && !version.unfinished) {
    const auto staged = helpers_.read_staged(series.id, version.number);
    if (!staged) {
      files_.note(staged.error());
      fault = "its overlay cannot be read: " + staged.error().message();
    } else if (!staged->empty()) {
      fault = "a part of it cannot be read: " + staged->front();
    }
  }
  if (!fault) return {};
  // A daemon may have sealed or removed the version meanwhile.
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto still, catalog::find_version(txn, series.id, version.number));
  if (!still || still->state != VersionState::kOpen) return {};
  const std::string name = series.name + "/" + version.name;
  report_.damages.push_back({path_ + "/staging", name + " was open, and " + *fault, {name}});
  return {};
}

// Checks that all chunks referred to by the versions are stored.
Result<void> Checker::check_chunks(const catalog::SeriesRecord& series,
                                   const std::vector<catalog::VersionRecord>& versions) {
  bool newer = false;
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    ++report_.versions;
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    auto chunks = catalog::version_chunks(txn, series.id, version.number);
    if (!chunks) {
      VARVE_TRY_ASSIGN(const auto still, catalog::find_version(txn, series.id, version.number));
      if (!still) continue;  // Deleted in the meantime.
      damage(path_ + "/catalog", chunks.error());
      continue;
    }
    const auto missing = catalog::own_part(*chunks).subtract(store_.present);
    if (missing.size() != 0) {
      damage(store_, folder_of(series.id),
             fmt::format("{} chunks are not stored anywhere", missing.size()), missing.runs());
      note_lost(series.id, missing);
    }
    VARVE_TRY_ASSIGN(const bool later, check_pool_chunks(txn, version, *chunks));
    newer = newer || later;
  }
  return newer ? check_data(pool_) : Result<void>();
}

// Reads labels and manifests completely, because both replace a lost catalog.
void Checker::check_manifests(const catalog::SeriesRecord& series,
                              const std::vector<catalog::VersionRecord>& versions) {
  const auto directory = folder_of(series.id);
  const auto derived = [](const std::string& what) {
    return what +
           " (the catalog is sound: after `varve repair`, the next opening rebuilds this file)";
  };
  const auto present = list_manifests(files_, directory);
  if (!present) {
    damage(directory + "/" + kManifestFolder, present.error().message());
    return;
  }
  // An earlier release wrote neither labels nor manifests.
  const auto labels = read_labels(files_, codecs_.frames(), directory, series.id);
  const bool none = !labels && labels.error().code() == ErrorCode::kNotFound && present->empty();
  if (!labels && !none) {
    damage(directory + "/" + kLabelsName, derived(labels.error().message()));
  }
  // An attached folder leaves manifests in the object store.
  if (helpers_.is_distant) return;
  std::set<VersionNumber> found;
  for (const auto& file : *present) {
    found.insert(file.number);
    const auto path = manifest_path(directory, file.number);
    const auto state =
        state_of_manifest(files_, codecs_.frames(), path, catalog_, series.id, file.number);
    report_.bytes_read += file.bytes;
    // Deleted in the meantime.
    if (!state && state.error().code() == ErrorCode::kNotFound) continue;
    if (!state) {
      damage(path, state.error().message());
    } else if (!state->fault.empty()) {
      damage(path, state->fault);
    }
  }
  for (const auto& version : versions) {
    if (!labels || version.state != VersionState::kSealed || found.contains(version.number)) {
      continue;
    }
    const auto txn = meta::ReadTxn::begin(catalog_);
    const auto now = txn ? catalog::find_version(*txn, series.id, version.number)
                         : Result<std::optional<catalog::VersionRecord>>(txn.error());
    if (!now || !*now) continue;  // Deleted in the meantime.
    damage(manifest_path(directory, version.number), derived("it is missing"));
  }
}

void Checker::check_beside(SeriesId series, const std::vector<catalog::VersionRecord>& versions) {
  const auto path = fmt::format("{}/{}", folder_of(series), store::kBesideName);
  const auto bytes = files_.read_file(path, format::kBesideImageBytesMax);
  if (!bytes && bytes.error().code() == ErrorCode::kNotFound) return;
  if (bytes) report_.bytes_read += bytes->size();
  const auto image = bytes ? format::decode_beside(series, *bytes) : bytes.error();
  if (image) note_names_beside(path, *image, versions);
  // A newer format is no damage.
  if (image || image.error().code() == ErrorCode::kUnsupported) return;
  damage(path, image.error().message() +
                   " (no version is touched: restore the file from a copy, or let `varve "
                   "repair` put it away)");
}

void Checker::note_names_beside(const std::string& path, const format::BesideImage& image,
                                const std::vector<catalog::VersionRecord>& versions) {
  for (const auto& file : image.records) {
    if (file.parent != kRootIno) continue;
    const bool is_of_version = std::ranges::any_of(versions, [&](const auto& version) {
      return version.name == file.name || version.name == partial_name(file.name);
    });
    if (file.name == kLatestName) {
      report_.notes.push_back({path,
                               "`latest` of a program replaces Varve's link to the newest version "
                               "in a mount; if no program needs it, remove it in a mount with -o "
                               "beside"});
    } else if (is_of_version) {
      report_.notes.push_back({path, "a version hides the file `" + file.name +
                                         "` beside the versions; `varve mv` renames the version"});
    } else if (is_partial_name(file.name)) {
      report_.notes.push_back({path, "the file `" + file.name +
                                         "` has a name of open versions; rename it in a mount with "
                                         "-o beside"});
    }
  }
}

void Checker::check_index(const catalog::SeriesRecord& series,
                          const std::vector<catalog::VersionRecord>& versions) {
  const catalog::VersionRecord* newest = nullptr;
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) newest = &version;
  }
  if (newest == nullptr || !helpers_.verify_index) return;
  const auto directory = folder_of(series.id);
  const auto verified = helpers_.verify_index(series.id, newest->number);
  if (verified) return;
  auto where = directory + "/" + store::snapshot_name(newest->number);
  if (verified.error().code() != ErrorCode::kNotFound) {
    return damage(
        std::move(where), verified.error(),
        " (derived data: `varve repair` removes it, and the next backup builds it again)");
  }
  // After the deletion of newer versions, the index is missing until the next seal.
  const bool was_newest = series.next_number == number_after(newest->number);
  if (!was_newest) return;
  report_.notes.push_back(
      {std::move(where), verified.error().message() +
                             "; a part of the index is missing, and the next backup builds it "
                             "again from containers"});
}

}  // namespace varve::maintain
