// SPDX-License-Identifier: Apache-2.0
#include "maintain/store_checker.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "catalog/alias_table.h"
#include "catalog/layout_records.h"
#include "maintain/layout_checker.h"
#include "maintain/owners.h"
#include "maintain/parallel_verifier.h"
#include "maintain/settled_files.h"
#include "parity/group_files.h"
#include "store/repository_names.h"

namespace varve::maintain {

StoreChecker::StoreChecker(const CheckScope& scope, const VerifyChoice& choice,
                           CheckFindings& findings, SeriesId owner, OnContainer on_container)
    : scope_(scope),
      choice_(choice),
      findings_(findings),
      owner_(owner),
      on_container_(std::move(on_container)) {}

void StoreChecker::damage(std::string where, std::string what, std::vector<base::IdRun> ids) {
  findings_.damage(std::move(where), std::move(what));
  if (!ids.empty()) mark_damaged(base::IdRuns::from(std::move(ids)));
}

void StoreChecker::mark_damaged(base::IdRuns ids) {
  damaged_.push_back({findings_.report().damages.size() - 1, std::move(ids)});
}

Result<void> StoreChecker::add_aliases() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
  VARVE_TRY_ASSIGN(const auto present, catalog::aliases_of(txn, present_));
  present_ = present_.unite(present);
  for (auto& mark : damaged_) {
    VARVE_TRY_ASSIGN(const auto damaged, catalog::aliases_of(txn, mark.ids));
    mark.ids = mark.ids.unite(damaged);
  }
  return {};
}

Result<void> StoreChecker::check_records() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
  const auto folder = scope_.stores.folder_of(owner_);
  // With read_data, reading the chunks also finds short files, and names the affected files.
  return check_layout(txn, store(), catalog::store_of(owner_), !scope_.options.read_data,
                      [&](const std::string& path, std::string what) {
                        findings_.damage(path.empty() ? scope_.catalog_path() : folder + "/" + path,
                                         std::move(what));
                      });
}

Result<void> StoreChecker::check_data() {
  // Each round checks the chunks of containers arranged or deleted during the round before, at the
  // chunks' new places.
  constexpr int kStoreRoundsMax = 16;
  for (int round = 0; round < kStoreRoundsMax; ++round) {
    VARVE_TRY_ASSIGN(const bool again, check_containers());
    if (!again) break;
  }
  present_ = base::IdRuns::from(found_);
  return {};
}

Result<bool> StoreChecker::check_containers() {
  const StoreId store_id = catalog::store_of(owner_);
  store::SegmentReader reader(store(), scope_.codecs.frames().keys());
  std::vector<format::ContainerRecord> containers;
  RunsOf runs_of;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    VARVE_TRY(catalog::for_each_container(
        txn, store_id, [&](const format::ContainerRecord& record) -> Result<bool> {
          if (!checked_.contains(record.number)) containers.push_back(record);
          return true;
        }));
    VARVE_TRY(catalog::for_each_location(
        txn, store_id, ChunkId{}, [&](const catalog::LocationRecord& record) -> Result<bool> {
          runs_of.emplace(record.container, record);
          return true;
        }));
  }
  std::sort(containers.begin(), containers.end(), [](const auto& a, const auto& b) {
    return std::pair(a.segment, a.offset) < std::pair(b.segment, b.offset);
  });
  std::vector<VerifyJob> jobs;
  for (const auto& record : containers) jobs.push_back(choice_.job_of(owner_, record));
  bool some_gone = false;
  Result<void> looked;
  const auto handle = [&](const VerifyJob& job, const ContainerVerdict& verdict) -> Result<void> {
    const auto& record = job.record;
    if (verdict.unavailable) return *verdict.unavailable;
    const auto damages = findings_.report().damages.size();
    const auto marks = damaged_.size();
    check_container(reader, record, verdict, runs_of);
    checked_.insert(record.number);
    findings_.report().bytes_read += verdict.bytes_read;
    if (findings_.report().damages.size() != damages) {
      VARVE_TRY_ASSIGN(const auto lost, confirm(record, verdict, runs_of, damages));
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
      VARVE_TRY_ASSIGN(const auto now, catalog::find_container(txn, store_id, record.number));
      if (!now || now->encode() != record.encode()) {
        some_gone = true;
        findings_.report().damages.resize(damages);
        damaged_.resize(marks);
        if (now) checked_.erase(record.number);
      } else {
        findings_.add_lost(owner_, lost);
      }
    }
    on_container_({owner_, static_cast<std::uint32_t>(record.segment), record.offset},
                  verdict.bytes_read);
    return {};
  };
  const VerifyPace pace{0, scope_.options.bytes_per_second, scope_.options.stop,
                        scope_.helpers.is_distant};
  findings_.report().finished =
      verify_containers(scope_.codecs, reader, store_id, jobs, pace,
                        [&](const VerifyJob& job, ContainerVerdict&& verdict) {
                          if (looked) looked = handle(job, verdict);
                        });
  if (!looked) return std::move(looked).error();
  return some_gone && findings_.report().finished;
}

void StoreChecker::check_container(const store::SegmentReader& reader,
                                   const format::ContainerRecord& record,
                                   const ContainerVerdict& verdict, const RunsOf& runs_of) {
  ++findings_.report().containers;
  const auto [first, last] = runs_of.equal_range(record.number);
  std::vector<base::IdRun> ids;
  for (auto it = first; it != last; ++it) ids.push_back({it->second.first, it->second.count});
  if (!verdict.header) {
    damage(reader.describe(record), verdict.error->message(), ids);
    found_.insert(found_.end(), ids.begin(), ids.end());
    return;
  }
  const auto& header = *verdict.header;
  findings_.report().chunks += header.chunks.size();
  for (auto it = first; it != last; ++it) {
    const auto& run = it->second;
    const std::uint64_t end = std::uint64_t{run.index} + run.count;
    if (end > header.chunks.size() || header.chunks[run.index].id != run.first ||
        header.chunks[end - 1].id != run.first.plus(run.count - 1)) {
      damage(scope_.catalog_path(), "a location does not fit " + reader.describe(record),
             {{run.first, run.count}});
    }
    found_.push_back({run.first, run.count});
  }
  const auto in_use = base::IdRuns::from(std::move(ids));
  for (const auto& fault : verdict.faults) {
    // Chunks without a location in the container are stored elsewhere or unused; the arranger will
    // drop the chunks.
    const auto touched = base::IdRuns::from(fault.chunks).intersect(in_use);
    if (!fault.chunks.empty() && touched.size() == 0) continue;
    const char* const advice =
        fault.is_padding && !fault.may_pass
            ? " (it has no data: no file is affected, and `varve repair` writes it again)"
            : "";
    damage(reader.describe(record), fault.what + advice, touched.runs());
  }
}

// Memory, a cable or a controller may have changed the bytes between disk and process. Only damage
// found by two reads is known damage.
Result<base::IdRuns> StoreChecker::confirm(const format::ContainerRecord& record,
                                           const ContainerVerdict& verdict, const RunsOf& runs_of,
                                           std::size_t first) {
  const auto [begin, end] = runs_of.equal_range(record.number);
  std::vector<base::IdRun> ids;
  for (auto it = begin; it != end; ++it) ids.push_back({it->second.first, it->second.count});
  const auto suspects = damaged_chunks(verdict, base::IdRuns::from(std::move(ids)));
  // The quarantine of an attached folder belongs to the folder that writes.
  if (suspects.size() == 0 || scope_.helpers.is_distant) return base::IdRuns();
  if (scope_.helpers.drop_cached) scope_.helpers.drop_cached();
  VARVE_TRY_ASSIGN(const auto second,
                   read_again(scope_.codecs, scope_.files, scope_.stores.folder_of(owner_), store(),
                              catalog::store_of(owner_), record, suspects));
  const bool was_right = second.sound == suspects;
  for (auto i = first; was_right && i < findings_.report().damages.size(); ++i) {
    findings_.report().damages[i].what +=
        "; a second read was right, so memory, a cable or a controller may be failing";
  }
  return second.lost;
}

Result<void> StoreChecker::check_parity() {
  auto& segments = store();
  std::vector<parity::DataFile> present;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
    findings_.report().parity.percent = settings.parity_percent;
    VARVE_TRY_ASSIGN(present, maintain::settled_files(txn, owner_));
  }
  const auto derived = [](const std::string& what) {
    return what + " (derived data: `varve repair` removes it, and arranging creates a new one)";
  };
  const auto listing = parity::list_groups(segments, catalog::store_of(owner_));
  if (!listing) {
    findings_.damage(segments.describe() + "/" + store::kParityFolder,
                     derived(listing.error().message()));
    return {};
  }
  findings_.report().parity.files += present.size();
  findings_.report().parity.files_protected += parity::count_protected(present, listing->groups);
  for (const auto& [number, error] : listing->damaged) {
    findings_.damage(segments.describe(number), derived(error.message()));
  }
  if (!scope_.options.read_data) return {};
  for (const auto& group : listing->groups) {
    const auto faults = parity::faults_of_group(segments, group);
    // Replaced in the meantime.
    if (!faults && faults.error().code() == ErrorCode::kNotFound) continue;
    if (!faults || !faults->empty()) {
      findings_.damage(segments.describe(group.number),
                       derived(faults ? *faults : faults.error().message()));
    }
    findings_.report().bytes_read += group.bytes;
    if (!keep_pace(group.bytes)) break;  // Unread parity does not make the check unfinished.
  }
  return {};
}

bool StoreChecker::keep_pace(std::uint64_t bytes) const {
  constexpr std::chrono::milliseconds kCheckEvery(50);
  if (scope_.options.bytes_per_second == 0) return !scope_.options.stop.stop_requested();
  auto wait = std::chrono::milliseconds(bytes * 1000 / scope_.options.bytes_per_second);
  for (; wait.count() > 0 && !scope_.options.stop.stop_requested(); wait -= kCheckEvery) {
    std::this_thread::sleep_for(std::min(wait, kCheckEvery));
  }
  return !scope_.options.stop.stop_requested();
}

}  // namespace varve::maintain
