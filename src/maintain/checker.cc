// SPDX-License-Identifier: Apache-2.0
#include "maintain/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "base/checksum.h"
#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "format/container.h"
#include "maintain/layout_checker.h"
#include "maintain/manifest_file.h"
#include "maintain/open_version_fault.h"
#include "maintain/settled_files.h"
#include "maintain/stray_files.h"
#include "maintain/tree_chunks.h"
#include "meta/page_check.h"
#include "meta/schema.h"
#include "parity/group_files.h"
#include "store/folder_store.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"

namespace varve::maintain {

Checker::Checker(const format::DataCodecs& codecs, const meta::Env& catalog, io::FileSystem& files,
                 std::string repository_path, const CheckOptions& options,
                 std::function<void(const CheckProgress&)> progress, VerifyIndex verify_index)
    : codecs_(codecs),
      catalog_(catalog),
      files_(files),
      path_(std::move(repository_path)),
      options_(options),
      progress_(std::move(progress)),
      verify_index_(std::move(verify_index)),
      choice_(std::random_device()()) {}

std::string Checker::series_directory(SeriesId series) const {
  return store::RepositoryPaths(path_).series(series);
}

void Checker::damage(std::string where, std::string what, std::vector<base::IdRun> ids) {
  if (!ids.empty())
    damaged_.push_back({report_.damages.size(), base::IdRuns::from(std::move(ids))});
  report_.damages.push_back({std::move(where), std::move(what), {}});
}

void Checker::check_name(const std::string& of, const std::string& fault,
                         const std::string& replacement) {
  if (fault.empty()) return;
  damage(path_ + "/catalog",
         fmt::format("the record of {} has a name that is not allowed ({}); Varve shows it as {}",
                     of, fault, replacement),
         {});
}

Result<CheckReport> Checker::run() {
  // Finds pages that a writer would refuse (meta/page_check.h), even if all are readable. kBusy
  // means that a writer commits too often for this check.
  const auto pages = meta::check_pages(catalog_, meta::catalog::kTables);
  if (!pages && pages.error().code() != ErrorCode::kBusy) {
    damage(path_ + "/catalog", pages.error().message(), {});
  }
  std::vector<catalog::SeriesRecord> all;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(all, catalog::list_series(txn));
    for (const auto& series : all) {
      VARVE_TRY(catalog::for_each_container(
          txn, catalog::store_of(series.id),
          [&](const format::ContainerRecord& record) -> Result<bool> {
            const bool header_only = job_of(series.id, record).level == VerifyLevel::kHeader;
            done_.bytes_total += record.header_bytes + (header_only ? 0 : record.data_bytes);
            return true;
          }));
    }
  }
  for (const auto& series : all) {
    check_name(fmt::format("series {}", static_cast<std::uint32_t>(series.id)), series.name_fault,
               series.name);
    auto checked = check_series(series);
    if (!checked) damage(path_ + "/catalog", checked.error().message(), {});
    if (!report_.finished) break;
  }
  if (report_.finished) note_strays();
  return std::move(report_);
}

void Checker::note_strays() {
  const auto note = [this](std::string where, std::string what) {
    report_.notes.push_back({std::move(where), std::move(what)});
  };
  note_unknown_files(files_, path_, note);
  note_trailing_bytes(catalog_, files_, path_, note);
}

Result<void> Checker::check_series(const catalog::SeriesRecord& series) {
  damaged_.clear();
  present_.clear();
  checked_.clear();
  std::vector<catalog::VersionRecord> versions;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(versions, catalog::list_versions(txn, series.id));
    for (const auto& version : versions) {
      check_name(fmt::format("version {} of series {}", static_cast<std::uint32_t>(version.number),
                             static_cast<std::uint32_t>(series.id)),
                 version.name_fault, version.name);
    }
    // With read_data, reading the chunks also finds short files, and names the affected files.
    store::FolderStore store(files_, series_directory(series.id));
    VARVE_TRY(check_layout(txn, store, catalog::store_of(series.id), !options_.read_data,
                           [&](const std::string& path, std::string what) {
                             damage(path.empty() ? path_ + "/catalog"
                                                 : series_directory(series.id) + "/" + path,
                                    std::move(what), {});
                           }));
  }
  for (const auto& version : versions) VARVE_TRY(check_open_version(series, version));
  // Each round checks, at their new places, the chunks of containers that were arranged or deleted
  // in the round before.
  constexpr int kRoundsMax = 16;
  for (int round = 0; round < kRoundsMax; ++round) {
    VARVE_TRY_ASSIGN(const bool again, check_containers(series));
    if (!again) break;
  }
  if (!report_.finished && damaged_.empty()) return {};
  if (report_.finished) {
    check_index(series, versions);
    check_manifests(series, versions);
    VARVE_TRY(check_parity(series.id));
  }
  if (report_.finished) VARVE_TRY(check_chunks(series, versions));
  // Also runs after a stop, to name the files that the damage touches.
  TreeChecker trees(catalog_, series, path_ + "/catalog", damaged_, report_);
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) trees.check(version);
  }
  if (report_.finished) VARVE_TRY(check_newest_record(series, versions));
  return {};
}

// Compares the record of the chunks to which the newest version refers with its tree. A seal makes
// the record from that of the version before, and deletions rely on it.
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
  if (!recorded) return {};  // Another part of the check reports it.
  const auto lacking = used.subtract(*recorded);
  // A daemon may have deleted the version meanwhile.
  VARVE_TRY_ASSIGN(const auto still, catalog::find_version(txn, series.id, newest->number));
  if (lacking.size() == 0 || !still) return {};
  damage(path_ + "/catalog",
         fmt::format("{} chunks of {}/{} are not in the record of its chunks; run `varve repair` "
                     "before any version is deleted",
                     lacking.size(), series.name, newest->name),
         {});
  return {};
}

Result<void> Checker::check_open_version(const catalog::SeriesRecord& series,
                                         const catalog::VersionRecord& version) {
  if (version.state != VersionState::kOpen) return {};
  std::optional<std::string> fault;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(fault, fault_of_open_version(files_, path_, txn, version, false));
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

// Checks that all chunks that the versions refer to are stored.
Result<void> Checker::check_chunks(const catalog::SeriesRecord& series,
                                   const std::vector<catalog::VersionRecord>& versions) {
  const auto present = base::IdRuns::from(present_);
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    ++report_.versions;
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    auto chunks = catalog::version_chunks(txn, series.id, version.number);
    if (!chunks) {
      damage(path_ + "/catalog", chunks.error().message(), {});
      continue;
    }
    const auto missing = chunks->subtract(present);
    if (missing.size() == 0) continue;
    damage(series_directory(series.id),
           fmt::format("{} chunks are not stored anywhere", missing.size()), missing.runs());
  }
  return {};
}

// Checks the containers that are not yet checked, in disk order. Returns true if some were replaced
// during the check.
Result<bool> Checker::check_containers(const catalog::SeriesRecord& series) {
  store::FolderStore store(files_, series_directory(series.id));
  store::SegmentReader reader(store);
  std::vector<format::ContainerRecord> containers;
  std::multimap<ContainerNumber, catalog::LocationRecord> runs_of;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY(
        catalog::for_each_container(txn, catalog::store_of(series.id),
                                    [&](const format::ContainerRecord& record) -> Result<bool> {
                                      if (!checked_.contains(record.number))
                                        containers.push_back(record);
                                      return true;
                                    }));
    VARVE_TRY(
        catalog::for_each_location(txn, catalog::store_of(series.id), ChunkId{},
                                   [&](const catalog::LocationRecord& record) -> Result<bool> {
                                     runs_of.emplace(record.container, record);
                                     return true;
                                   }));
  }
  std::sort(containers.begin(), containers.end(), [](const auto& a, const auto& b) {
    return std::pair(a.segment, a.offset) < std::pair(b.segment, b.offset);
  });
  std::vector<VerifyJob> jobs;
  for (const auto& record : containers) jobs.push_back(job_of(series.id, record));
  bool some_gone = false;
  Result<void> looked;
  const auto handle = [&](const VerifyJob& job, const ContainerVerdict& verdict) -> Result<void> {
    const auto& record = job.record;
    const auto damages = report_.damages.size();
    const auto marks = damaged_.size();
    check_container(reader, record, verdict, runs_of);
    checked_.insert(record.number);
    done_.bytes_done += verdict.bytes_read;
    done_.reached = {series.id, static_cast<std::uint32_t>(record.segment), record.offset};
    report_.bytes_read += verdict.bytes_read;
    if (report_.damages.size() != damages) {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(const auto now,
                       catalog::find_container(txn, catalog::store_of(series.id), record.number));
      if (!now || now->encode() != record.encode()) {
        some_gone = true;
        report_.damages.resize(damages);
        damaged_.resize(marks);
        if (now) checked_.erase(record.number);
      }
    }
    if (progress_) progress_(done_);
    return {};
  };
  const VerifyPace pace{0, options_.bytes_per_second, options_.stop};
  report_.finished = verify_containers(codecs_, reader, catalog::store_of(series.id), jobs, pace,
                                       [&](const VerifyJob& job, ContainerVerdict&& verdict) {
                                         if (looked) looked = handle(job, verdict);
                                       });
  if (!looked) return std::move(looked).error();
  return some_gone && report_.finished;
}

VerifyJob Checker::job_of(SeriesId series, const format::ContainerRecord& record) const {
  const CheckPosition here{series, static_cast<std::uint32_t>(record.segment), record.offset};
  const bool before = options_.after && here <= *options_.after;
  if (!options_.read_data || before) return {record, VerifyLevel::kHeader};
  if (options_.percent < 100) {
    const std::string name =
        base::be64(choice_) + base::be32(static_cast<std::uint32_t>(record.number));
    const auto draw = base::checksum64(base::as_bytes(name)) % 100;
    if (draw >= options_.percent) return {record, VerifyLevel::kHeader};
  }
  return {record, options_.verify_chunks ? VerifyLevel::kChunks : VerifyLevel::kFrames};
}

void Checker::check_container(
    const store::SegmentReader& reader, const format::ContainerRecord& record,
    const ContainerVerdict& verdict,
    const std::multimap<ContainerNumber, catalog::LocationRecord>& runs_of) {
  ++report_.containers;
  const auto [first, last] = runs_of.equal_range(record.number);
  std::vector<base::IdRun> ids;
  for (auto it = first; it != last; ++it) ids.push_back({it->second.first, it->second.count});
  if (!verdict.header) {
    damage(reader.describe(record), verdict.error->message(), ids);
    present_.insert(present_.end(), ids.begin(), ids.end());
    return;
  }
  const auto& header = *verdict.header;
  report_.chunks += header.chunks.size();
  for (auto it = first; it != last; ++it) {
    const auto& run = it->second;
    const std::uint64_t end = std::uint64_t{run.index} + run.count;
    if (end > header.chunks.size() || header.chunks[run.index].id != run.first ||
        header.chunks[end - 1].id != run.first.plus(run.count - 1)) {
      damage(path_ + "/catalog", "a location does not fit " + reader.describe(record),
             {{run.first, run.count}});
    }
    present_.push_back({run.first, run.count});
  }
  const auto in_use = base::IdRuns::from(std::move(ids));
  for (const auto& fault : verdict.faults) {
    // Chunks without a location here are stored elsewhere or unused; arranging will drop them.
    const auto touched = base::IdRuns::from(fault.chunks).intersect(in_use);
    if (!fault.chunks.empty() && touched.size() == 0) continue;
    damage(reader.describe(record), fault.what, touched.runs());
  }
}

// Reads labels and manifests completely, because they replace the catalog when it is lost.
void Checker::check_manifests(const catalog::SeriesRecord& series,
                              const std::vector<catalog::VersionRecord>& versions) {
  const auto directory = series_directory(series.id);
  const auto derived = [](const std::string& what) {
    return what +
           " (the catalog is sound: after `varve repair`, the next opening rebuilds this file)";
  };
  const auto present = list_manifests(files_, directory);
  if (!present) {
    damage(directory + "/" + kManifestFolder, present.error().message(), {});
    return;
  }
  // An earlier release wrote neither labels nor manifests.
  const auto labels = read_labels(files_, codecs_.frames(), directory, series.id);
  const bool none = !labels && labels.error().code() == ErrorCode::kNotFound && present->empty();
  if (!labels && !none) {
    damage(directory + "/" + kLabelsName, derived(labels.error().message()), {});
  }
  std::set<VersionNumber> found;
  for (const auto& file : *present) {
    found.insert(file.number);
    const auto path = manifest_path(directory, file.number);
    const auto fault = fault_of_manifest(files_, codecs_.frames(), path, series.id, file.number);
    report_.bytes_read += file.bytes;
    // Deleted in the meantime.
    if (!fault && fault.error().code() == ErrorCode::kNotFound) continue;
    if (!fault || !fault->empty()) damage(path, fault ? *fault : fault.error().message(), {});
  }
  for (const auto& version : versions) {
    if (!labels || version.state != VersionState::kSealed || found.contains(version.number)) {
      continue;
    }
    const auto txn = meta::ReadTxn::begin(catalog_);
    const auto now = txn ? catalog::find_version(*txn, series.id, version.number)
                         : Result<std::optional<catalog::VersionRecord>>(txn.error());
    if (!now || !*now) continue;  // Deleted in the meantime.
    damage(manifest_path(directory, version.number), derived("it is missing"), {});
  }
}

Result<void> Checker::check_parity(SeriesId series) {
  store::FolderStore store(files_, series_directory(series));
  std::vector<parity::DataFile> present;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
    report_.parity.percent = settings.parity_percent;
    VARVE_TRY_ASSIGN(present, maintain::settled_files(txn, series));
  }
  const auto derived = [](const std::string& what) {
    return what + " (derived data: `varve repair` removes it, and arranging creates a new one)";
  };
  const auto listing = parity::list_groups(store, catalog::store_of(series));
  if (!listing) {
    damage(store.describe() + "/" + store::kParityFolder, derived(listing.error().message()), {});
    return {};
  }
  report_.parity.files += present.size();
  report_.parity.files_protected += parity::count_protected(present, listing->groups);
  for (const auto& [number, error] : listing->damaged) {
    damage(store.describe(number), derived(error.message()), {});
  }
  if (!options_.read_data) return {};
  for (const auto& group : listing->groups) {
    const auto faults = parity::faults_of_group(store, group);
    // Replaced in the meantime.
    if (!faults && faults.error().code() == ErrorCode::kNotFound) continue;
    if (!faults || !faults->empty()) {
      damage(store.describe(group.number), derived(faults ? *faults : faults.error().message()),
             {});
    }
    report_.bytes_read += group.bytes;
    if (!keep_pace(group.bytes)) break;  // Unread parity does not make the check unfinished.
  }
  return {};
}

bool Checker::keep_pace(std::uint64_t bytes) const {
  constexpr std::chrono::milliseconds kCheckEvery(50);
  if (options_.bytes_per_second == 0) return !options_.stop.stop_requested();
  auto wait = std::chrono::milliseconds(bytes * 1000 / options_.bytes_per_second);
  for (; wait.count() > 0 && !options_.stop.stop_requested(); wait -= kCheckEvery) {
    std::this_thread::sleep_for(std::min(wait, kCheckEvery));
  }
  return !options_.stop.stop_requested();
}

void Checker::check_index(const catalog::SeriesRecord& series,
                          const std::vector<catalog::VersionRecord>& versions) {
  const catalog::VersionRecord* newest = nullptr;
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) newest = &version;
  }
  if (newest == nullptr || !verify_index_) return;
  const auto directory = series_directory(series.id);
  const auto next = static_cast<VersionNumber>(static_cast<std::uint32_t>(newest->number) + 1);
  const auto verified = verify_index_(series.id, newest->number);
  // After the deletion of newer versions, the index is missing until the next seal.
  const bool was_newest = series.next_number == static_cast<std::uint32_t>(next);
  if (!verified && verified.error().code() == ErrorCode::kNotFound && !was_newest) return;
  if (!verified) {
    damage(directory + "/" + store::snapshot_name(newest->number),
           verified.error().message() + " (derived data: the next backup rebuilds it)", {});
  }
}

}  // namespace varve::maintain
