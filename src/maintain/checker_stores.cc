// SPDX-License-Identifier: Apache-2.0
// Checks the store of a series, and the pool.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/checksum.h"
#include "base/coding.h"
#include "catalog/alias_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "format/container.h"
#include "maintain/checker.h"
#include "maintain/layout_checker.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"
#include "maintain/settled_files.h"
#include "parity/group_files.h"

namespace varve::maintain {

Result<void> Checker::check_pool() {
  pool_.owner = kPoolOwner;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    for (const auto& checked :
         {check_pool_users(txn), check_pool_births(txn), check_rewrite_counts(txn)}) {
      if (!checked) damage(path_ + "/catalog", checked.error());
    }
    VARVE_TRY_ASSIGN(const bool present, has_pool(txn));
    if (!present) return {};
  }
  VARVE_TRY(check_records(pool_));
  if (auto checked = check_aliases(); !checked) {
    damage(folder_of(kPoolOwner), checked.error());
  }
  VARVE_TRY(check_data(pool_));
  return report_.finished ? check_parity(kPoolOwner) : Result<void>();
}

Result<void> Checker::check_pool_users(const meta::Txn& txn) {
  std::map<ContainerNumber, std::uint32_t> users;
  VARVE_TRY(catalog::for_each_pool_use(
      txn,
      [&](SeriesId series, VersionNumber number,
          const std::vector<catalog::PoolUse>& uses) -> Result<bool> {
        VARVE_TRY_ASSIGN(const auto version, catalog::find_version(txn, series, number));
        // An open version with chunks in the pool has a record without containers.
        if (!version || (version->state != VersionState::kSealed && !uses.empty())) {
          damage(
              path_ + "/catalog",
              fmt::format("version {} of series {} uses containers of the pool, but is not a "
                          "sealed version",
                          static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(series)));
        }
        for (const auto& use : uses) ++users[use.container];
        return true;
      }));
  // Many containers may have a wrong number, so the report names the first container.
  std::uint64_t wrong = 0;
  std::string first;
  const auto compare = [&](ContainerNumber container, std::uint32_t recorded,
                           std::uint32_t counted) {
    if (recorded == counted || wrong++ != 0) return;
    first = fmt::format("container {} of the pool has {} users instead of {}", container, recorded,
                        counted);
  };
  VARVE_TRY(catalog::for_each_pool_users(
      txn, [&](ContainerNumber container, std::uint32_t recorded) -> Result<bool> {
        const auto counted = users.find(container);
        compare(container, recorded, counted == users.end() ? 0 : counted->second);
        if (counted != users.end()) users.erase(counted);
        return true;
      }));
  for (const auto& [container, counted] : users) compare(container, 0, counted);
  if (wrong == 0) return {};
  damage(path_ + "/catalog",
         wrong == 1 ? first : fmt::format("{}, and so have {} more", first, wrong - 1));
  return {};
}

Result<void> Checker::check_rewrite_counts(const meta::Txn& txn) {
  return catalog::for_each_rewrite_counts(
      txn, [&](SeriesId series, VersionNumber number, const RewriteCounts&) -> Result<bool> {
        VARVE_TRY_ASSIGN(const auto version, catalog::find_version(txn, series, number));
        if (version && version->state == VersionState::kSealed) return true;
        damage(path_ + "/catalog",
               fmt::format("version {} of series {} has counts of rewriting, but is not a sealed "
                           "version",
                           static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(series)));
        return true;
      });
}

// If a birth was given twice, two chunks could get one id.
Result<void> Checker::check_pool_births(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto next, catalog::next_pool_birth(txn));
  VARVE_TRY_ASSIGN(const auto last,
                   catalog::find_last_location_before(txn, kPoolStore, ChunkId{UINT64_MAX}));
  if (!last || last->first.birth() < next) return {};
  damage(path_ + "/catalog", "the pool would give a birth twice: its chunks have later ones");
  return {};
}

Result<bool> Checker::check_pool_chunks(const meta::Txn& txn, const catalog::VersionRecord& version,
                                        const base::IdRuns& chunks) {
  const auto shared = catalog::pool_part(chunks);
  VARVE_TRY_ASSIGN(const auto recorded,
                   catalog::find_pool_use(txn, version.series, version.number));
  if (shared.size() == 0 && recorded.empty()) return false;
  const auto of_version = [&version] {
    return fmt::format("version {} of series {}", static_cast<std::uint32_t>(version.number),
                       static_cast<std::uint32_t>(version.series));
  };
  VARVE_TRY_ASSIGN(const auto uses, catalog::pool_use_of(txn, shared));
  if (recorded != uses) {
    damage(path_ + "/catalog",
           "the list of the pool's containers that " + of_version() + " uses is wrong");
  }
  VARVE_TRY_ASSIGN(const auto next, catalog::next_pool_birth(txn));
  if (shared.size() != 0 && shared.runs().back().first.birth() >= next) {
    damage(path_ + "/catalog",
           "the pool would give a birth twice: chunks of " + of_version() + " have later ones");
  }
  auto missing = shared.subtract(pool_.present);
  if (missing.size() == 0) return false;
  VARVE_TRY_ASSIGN(const auto located, catalog::located_ids(txn, missing));
  missing = missing.subtract(located);
  if (missing.size() != 0) {
    damage(pool_, folder_of(kPoolOwner),
           fmt::format("{} chunks of {} are not stored anywhere", missing.size(), of_version()),
           missing.runs());
    VARVE_TRY_ASSIGN(const auto stored, catalog::stored_ids(txn, missing));
    note_lost(kPoolOwner, stored);
  }
  return located.size() != 0;
}

Result<void> Checker::check_records(Store& store) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  const auto folder = folder_of(store.owner);
  auto& files = store_of(store.owner);
  // With read_data, reading the chunks also finds short files, and names the affected files.
  return check_layout(txn, files, catalog::store_of(store.owner), !options_.read_data,
                      [&](const std::string& path, std::string what) {
                        damage(path.empty() ? path_ + "/catalog" : folder + "/" + path,
                               std::move(what));
                      });
}

Result<void> Checker::check_data(Store& store) {
  // Each round checks the chunks of containers arranged or deleted during the round before, at the
  // chunks' new places.
  constexpr int kStoreRoundsMax = 16;
  for (int round = 0; round < kStoreRoundsMax; ++round) {
    VARVE_TRY_ASSIGN(const bool again, check_containers(store));
    if (!again) break;
  }
  store.present = base::IdRuns::from(store.found);
  return store.owner == kPoolOwner ? add_aliases() : Result<void>();
}

// An alias is present or damaged if the target is.
Result<void> Checker::add_aliases() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto present, catalog::aliases_of(txn, pool_.present));
  pool_.present = pool_.present.unite(present);
  for (auto& mark : pool_.damaged) {
    VARVE_TRY_ASSIGN(const auto damaged, catalog::aliases_of(txn, mark.ids));
    mark.ids = mark.ids.unite(damaged);
  }
  return {};
}

Result<void> Checker::check_aliases() {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY(check_alias_records(
        txn, [this](std::string what) { damage(path_ + "/catalog", std::move(what)); }));
  }
  VARVE_TRY_ASSIGN(const auto found,
                   check_alias_files(catalog_, {&files_, folder_of(kPoolOwner)},
                                     store_of(kPoolOwner), codecs_.frames().keys()));
  report_.bytes_read += found.bytes_read;
  for (const auto& fault : found.faults) damage(fault.where, fault.what);
  if (found.wrong.size() != 0) {
    pool_.damaged.push_back({report_.damages.size() - 1, found.wrong});  // The last fault.
  }
  return {};
}

// Checks the containers that are not yet checked, in disk order. Returns true if some were replaced
// during the check.
Result<bool> Checker::check_containers(Store& store) {
  const StoreId store_id = catalog::store_of(store.owner);
  auto& files = store_of(store.owner);
  store::SegmentReader reader(files, codecs_.frames().keys());
  std::vector<format::ContainerRecord> containers;
  std::multimap<ContainerNumber, catalog::LocationRecord> runs_of;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY(catalog::for_each_container(
        txn, store_id, [&](const format::ContainerRecord& record) -> Result<bool> {
          if (!store.checked.contains(record.number)) containers.push_back(record);
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
  for (const auto& record : containers) jobs.push_back(job_of(store.owner, record));
  bool some_gone = false;
  Result<void> looked;
  const auto handle = [&](const VerifyJob& job, const ContainerVerdict& verdict) -> Result<void> {
    const auto& record = job.record;
    if (verdict.unavailable) return *verdict.unavailable;
    const auto damages = report_.damages.size();
    const auto marks = store.damaged.size();
    check_container(store, reader, record, verdict, runs_of);
    store.checked.insert(record.number);
    done_.bytes_done += verdict.bytes_read;
    done_.reached = {store.owner, static_cast<std::uint32_t>(record.segment), record.offset};
    report_.bytes_read += verdict.bytes_read;
    if (report_.damages.size() != damages) {
      VARVE_TRY_ASSIGN(const auto lost, confirm(store, record, verdict, runs_of, damages));
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(const auto now, catalog::find_container(txn, store_id, record.number));
      if (!now || now->encode() != record.encode()) {
        some_gone = true;
        report_.damages.resize(damages);
        store.damaged.resize(marks);
        if (now) store.checked.erase(record.number);
      } else {
        note_lost(store.owner, lost);
      }
    }
    if (progress_) progress_(done_);
    return {};
  };
  const VerifyPace pace{0, options_.bytes_per_second, options_.stop, helpers_.is_distant};
  report_.finished = verify_containers(codecs_, reader, store_id, jobs, pace,
                                       [&](const VerifyJob& job, ContainerVerdict&& verdict) {
                                         if (looked) looked = handle(job, verdict);
                                       });
  if (!looked) return std::move(looked).error();
  return some_gone && report_.finished;
}

VerifyJob Checker::job_of(SeriesId owner, const format::ContainerRecord& record) const {
  const CheckPosition here{owner, static_cast<std::uint32_t>(record.segment), record.offset};
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
    Store& store, const store::SegmentReader& reader, const format::ContainerRecord& record,
    const ContainerVerdict& verdict,
    const std::multimap<ContainerNumber, catalog::LocationRecord>& runs_of) {
  ++report_.containers;
  const auto [first, last] = runs_of.equal_range(record.number);
  std::vector<base::IdRun> ids;
  for (auto it = first; it != last; ++it) ids.push_back({it->second.first, it->second.count});
  if (!verdict.header) {
    damage(store, reader.describe(record), verdict.error->message(), ids);
    store.found.insert(store.found.end(), ids.begin(), ids.end());
    return;
  }
  const auto& header = *verdict.header;
  report_.chunks += header.chunks.size();
  for (auto it = first; it != last; ++it) {
    const auto& run = it->second;
    const std::uint64_t end = std::uint64_t{run.index} + run.count;
    if (end > header.chunks.size() || header.chunks[run.index].id != run.first ||
        header.chunks[end - 1].id != run.first.plus(run.count - 1)) {
      damage(store, path_ + "/catalog", "a location does not fit " + reader.describe(record),
             {{run.first, run.count}});
    }
    store.found.push_back({run.first, run.count});
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
    damage(store, reader.describe(record), fault.what + advice, touched.runs());
  }
}

// Memory, a cable or a controller may have changed the bytes between disk and process. Only damage
// found by two reads is known damage.
Result<base::IdRuns> Checker::confirm(
    const Store& store, const format::ContainerRecord& record, const ContainerVerdict& verdict,
    const std::multimap<ContainerNumber, catalog::LocationRecord>& runs_of, std::size_t first) {
  const auto [begin, end] = runs_of.equal_range(record.number);
  std::vector<base::IdRun> ids;
  for (auto it = begin; it != end; ++it) ids.push_back({it->second.first, it->second.count});
  const auto suspects = damaged_chunks(verdict, base::IdRuns::from(std::move(ids)));
  // The quarantine of an attached folder belongs to the folder that writes.
  if (suspects.size() == 0 || helpers_.is_distant) return base::IdRuns();
  if (helpers_.drop_cached) helpers_.drop_cached();
  VARVE_TRY_ASSIGN(const auto second,
                   read_again(codecs_, files_, folder_of(store.owner), store_of(store.owner),
                              catalog::store_of(store.owner), record, suspects));
  const bool was_right = second.sound == suspects;
  for (auto i = first; was_right && i < report_.damages.size(); ++i) {
    report_.damages[i].what +=
        "; a second read was right, so memory, a cable or a controller may be failing";
  }
  return second.lost;
}

void Checker::note_lost(SeriesId owner, const base::IdRuns& chunks) {
  auto& lost = lost_[catalog::store_of(owner)];
  lost.insert(lost.end(), chunks.runs().begin(), chunks.runs().end());
}

LostChunks Checker::lost_chunks() const {
  LostChunks lost;
  for (const auto& [store, runs] : lost_) {
    auto chunks = base::IdRuns::from(runs);
    if (chunks.size() != 0) lost[store] = std::move(chunks);
  }
  return lost;
}

Result<void> Checker::check_parity(SeriesId owner) {
  auto& store = store_of(owner);
  std::vector<parity::DataFile> present;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
    report_.parity.percent = settings.parity_percent;
    VARVE_TRY_ASSIGN(present, maintain::settled_files(txn, owner));
  }
  const auto derived = [](const std::string& what) {
    return what + " (derived data: `varve repair` removes it, and arranging creates a new one)";
  };
  const auto listing = parity::list_groups(store, catalog::store_of(owner));
  if (!listing) {
    damage(store.describe() + "/" + store::kParityFolder, derived(listing.error().message()));
    return {};
  }
  report_.parity.files += present.size();
  report_.parity.files_protected += parity::count_protected(present, listing->groups);
  for (const auto& [number, error] : listing->damaged) {
    damage(store.describe(number), derived(error.message()));
  }
  if (!options_.read_data) return {};
  for (const auto& group : listing->groups) {
    const auto faults = parity::faults_of_group(store, group);
    // Replaced in the meantime.
    if (!faults && faults.error().code() == ErrorCode::kNotFound) continue;
    if (!faults || !faults->empty()) {
      damage(store.describe(group.number), derived(faults ? *faults : faults.error().message()));
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

}  // namespace varve::maintain
