// SPDX-License-Identifier: Apache-2.0
#include "maintain/checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <utility>

#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "maintain/catalog_checks.h"
#include "maintain/open_version_fault.h"
#include "maintain/owners.h"
#include "maintain/series_file_checks.h"
#include "maintain/stray_files.h"
#include "meta/page_check.h"
#include "meta/schema.h"

namespace varve::maintain {

Checker::Checker(const format::DataCodecs& codecs, const meta::Env& catalog, io::FileSystem& files,
                 std::string repository_path, const CheckOptions& options,
                 std::function<void(const CheckProgress&)> progress, CheckHelpers helpers)
    : files_(files),
      options_(options),
      progress_(std::move(progress)),
      helpers_(std::move(helpers)),
      stores_(helpers_.open_store, files_, repository_path),
      scope_{codecs, catalog, files_, std::move(repository_path), options_, helpers_, stores_},
      findings_(files_),
      choice_(options_, std::random_device()()),
      pool_(scope_, choice_, findings_,
            [this](const CheckPosition& reached, std::uint64_t bytes) { pass(reached, bytes); }) {}

void Checker::pass(const CheckPosition& reached, std::uint64_t bytes) {
  done_.bytes_done += bytes;
  done_.reached = reached;
  if (progress_) progress_(done_);
}

Result<CheckReport> Checker::run() {
  const auto checked = check_all();
  VARVE_TRY(files_.conclusive());
  if (!checked) return checked.error();
  return std::move(findings_.report());
}

Result<void> Checker::check_all() {
  // Finds pages refused by a writer (meta/page_check.h), even if all pages are readable. kBusy
  // means that a writer commits too often for the check of the pages.
  const auto pages = meta::check_pages(scope_.catalog, meta::catalog::kTables);
  if (!pages && pages.error().code() != ErrorCode::kBusy) {
    findings_.damage(scope_.catalog_path(), pages.error());
  }
  // The storage of an encrypted repository may be hostile, and leaves right checksums.
  const bool sealed = scope_.catalog.seal() != nullptr;
  if (sealed && pages) VARVE_TRY(check_values(scope_, findings_));
  std::vector<catalog::SeriesRecord> all;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    VARVE_TRY_ASSIGN(all, catalog::list_series(txn));
    VARVE_TRY_ASSIGN(const auto owners, owners_in(txn));
    for (const auto owner : owners) {
      VARVE_TRY(catalog::for_each_container(
          txn, catalog::store_of(owner),
          [&](const format::ContainerRecord& record) -> Result<bool> {
            const bool header_only = choice_.job_of(owner, record).level == VerifyLevel::kHeader;
            done_.bytes_total += record.header_bytes + (header_only ? 0 : record.data_bytes);
            return true;
          }));
    }
  }
  if (sealed) VARVE_TRY(check_owners(scope_, findings_, all));
  VARVE_TRY(note_fault(pool_.check()));
  for (const auto& series : all) {
    // After a stop, the check still names the files affected by damage of the pool.
    if (!findings_.report().finished && pool_.damaged().empty()) break;
    check_name(fmt::format("series {}", static_cast<std::uint32_t>(series.id)), series.name_fault,
               series.name);
    VARVE_TRY(note_fault(check_series(series)));
  }
  if (findings_.report().finished) {
    if (scope_.helpers.has_open_versions) VARVE_TRY(check_open_losses());
    VARVE_TRY(check_labels(scope_, findings_, all));
    check_derived();
    note_strays();
  }
  return {};
}

// An unreadable part of the catalog is damage. A store that does not answer is no damage.
Result<void> Checker::note_fault(const Result<void>& checked) {
  if (checked) return {};
  if (checked.error().code() == ErrorCode::kUnavailable) return checked;
  findings_.damage(scope_.catalog_path(), checked.error());
  return {};
}

void Checker::check_name(const std::string& of, const std::string& fault,
                         const std::string& replacement) {
  if (fault.empty()) return;
  findings_.damage(
      scope_.catalog_path(),
      fmt::format("the record of {} has a name that is not allowed ({}); Varve shows it as {}", of,
                  fault, replacement));
}

void Checker::note_strays() {
  const auto note = [this](std::string where, std::string what) {
    findings_.note(std::move(where), std::move(what));
  };
  note_unknown_files(scope_.files, scope_.path, note);
  note_trailing_bytes(scope_.catalog, scope_.files, scope_.helpers.open_store, scope_.path, note);
}

// Damage to derived files costs only time at the next backup.
void Checker::check_derived() {
  if (!scope_.helpers.derived_faults) return;
  const auto faults = scope_.helpers.derived_faults();
  if (!faults) return findings_.damage(scope_.path, faults.error());
  for (const auto& fault : *faults) {
    if (fault.after_power_cut) {
      findings_.note(fault.path,
                     fault.error.message() +
                         "; a power cut may leave this. The next `varve store` reads every file, "
                         "and `varve repair` removes this one");
    } else {
      findings_.damage(
          fault.path, fault.error,
          " (derived data: `varve repair` removes it, and the next backup builds it again)");
    }
  }
}

Result<void> Checker::check_series(const catalog::SeriesRecord& series) {
  StoreChecker store(
      scope_, choice_, findings_, series.id,
      [this](const CheckPosition& reached, std::uint64_t bytes) { pass(reached, bytes); });
  const bool stopped = !findings_.report().finished;
  std::vector<catalog::VersionRecord> versions;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    VARVE_TRY_ASSIGN(versions, catalog::list_versions(txn, series.id));
  }
  for (const auto& version : versions) {
    if (stopped) break;
    check_name(fmt::format("version {} of series {}", static_cast<std::uint32_t>(version.number),
                           static_cast<std::uint32_t>(series.id)),
               version.name_fault, version.name);
  }
  if (!stopped) VARVE_TRY(store.check_records());
  for (const auto& version : versions) {
    if (!stopped) VARVE_TRY(check_open_version(series, version));
  }
  if (!stopped) VARVE_TRY(store.check_data());
  if (!findings_.report().finished && store.damaged().empty() && pool_.damaged().empty()) return {};
  if (findings_.report().finished) {
    check_index(scope_, findings_, series, versions);
    check_manifests(scope_, findings_, series, versions);
    check_beside(scope_, findings_, series.id, versions);
    VARVE_TRY(store.check_parity());
  }
  if (findings_.report().finished) VARVE_TRY(check_chunks(versions, store));
  // Also runs after a stop, to name the files affected by the damage.
  auto damaged = pool_.damaged();
  damaged.insert(damaged.end(), store.damaged().begin(), store.damaged().end());
  TreeChecker trees(scope_.catalog, series, scope_.catalog_path(), damaged, findings_.report());
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) trees.check(version);
  }
  const auto broken = trees.broken();
  broken_.insert(broken_.end(), broken.begin(), broken.end());
  if (!findings_.report().finished) return {};
  return check_newest_record(scope_, findings_, series, versions);
}

Result<void> Checker::check_open_version(const catalog::SeriesRecord& series,
                                         const catalog::VersionRecord& version) {
  if (version.state != VersionState::kOpen || !scope_.helpers.has_open_versions) return {};
  std::optional<std::string> fault;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    VARVE_TRY_ASSIGN(fault, fault_of_open_version(scope_.files, scope_.path, txn, version, false));
  }
  if (!fault && scope_.catalog.seal() != nullptr && scope_.helpers.read_staged &&
      !version.unfinished) {
    const auto staged = scope_.helpers.read_staged(series.id, version.number);
    if (!staged) {
      files_.note(staged.error());
      fault = "its overlay cannot be read: " + staged.error().message();
    } else if (!staged->empty()) {
      fault = "a part of it cannot be read: " + staged->front();
    }
  }
  if (!fault) return {};
  // A daemon may have sealed or removed the version meanwhile.
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
  VARVE_TRY_ASSIGN(const auto still, catalog::find_version(txn, series.id, version.number));
  if (!still || still->state != VersionState::kOpen) return {};
  const std::string name = series.name + "/" + version.name;
  findings_.damage(scope_.path + "/staging", name + " was open, and " + *fault, {name});
  return {};
}

Result<void> Checker::check_open_losses() {
  VARVE_TRY_ASSIGN(const auto losses, find_open_losses({scope_.files, scope_.path, scope_.catalog,
                                                        scope_.codecs.keys()},
                                                       scope_.helpers.find_unstored, false));
  for (const auto& loss : losses) {
    std::vector<std::string> affected;
    for (const auto& name : loss.files.names) affected.push_back(loss.name + "/" + name);
    findings_.damage(scope_.path + "/staging", describe_open_loss(loss), std::move(affected));
  }
  return {};
}

Result<void> Checker::check_chunks(const std::vector<catalog::VersionRecord>& versions,
                                   StoreChecker& store) {
  bool newer = false;
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    ++findings_.report().versions;
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    auto chunks = catalog::version_chunks(txn, version.series, version.number);
    if (!chunks) {
      VARVE_TRY_ASSIGN(const auto still,
                       catalog::find_version(txn, version.series, version.number));
      if (!still) continue;  // Deleted in the meantime.
      findings_.damage(scope_.catalog_path(), chunks.error());
      continue;
    }
    const auto missing = catalog::own_part(*chunks).subtract(store.present());
    if (missing.size() != 0) {
      store.damage(scope_.stores.folder_of(version.series),
                   fmt::format("{} chunks are not stored anywhere", missing.size()),
                   missing.runs());
      findings_.add_lost(version.series, missing);
    }
    VARVE_TRY_ASSIGN(const bool later, pool_.check_chunks(txn, version, *chunks));
    newer = newer || later;
  }
  return newer ? pool_.check_data() : Result<void>();
}

}  // namespace varve::maintain
