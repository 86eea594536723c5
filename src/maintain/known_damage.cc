// SPDX-License-Identifier: Apache-2.0
#include "maintain/known_damage.h"

#include <fcntl.h>

#include <utility>
#include <vector>

#include "base/system_error.h"
#include "catalog/alias_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "maintain/owners.h"
#include "store/repository_paths.h"
#include "store/segment_files.h"

namespace varve::maintain {

namespace {

// The arranger may move containers during the reads.
constexpr int kMovedRoundsMax = 8;

// Returns whether an error shows lost bytes, as opposed to a temporary error.
bool shows_loss(const Error& error) {
  return base::is_damage(error) || error.code() == ErrorCode::kNotFound;
}

// The page cache may have wrong bytes where the disk has the right bytes. Only advice.
void drop_cached_pages(io::FileSystem& files, const std::string& path,
                       const format::ContainerRecord& record) {
  const auto fd = files.descriptor(path, io::OpenMode::kRead);
  if (!fd) return;
  ::posix_fadvise(fd->get(), static_cast<off_t>(record.offset), 0, POSIX_FADV_DONTNEED);
}

/// Confirms the damage of one store.
class Confirmation {
 public:
  Confirmation(const format::DataCodecs& codecs, const meta::Env& catalog, io::FileSystem& files,
               std::string folder, store::SegmentStore& segments, StoreId store)
      : codecs_(codecs),
        catalog_(catalog),
        files_(files),
        folder_(std::move(folder)),
        segments_(segments),
        store_(store) {}

  Result<void> run(base::IdRuns named) {
    for (int round = 0; round < kMovedRoundsMax && named.size() != 0; ++round) {
      VARVE_TRY(place(named));
      if (round == 0) VARVE_TRY(judge_unplaced(named));
      VARVE_TRY_ASSIGN(named, read());
    }
    return {};
  }
  [[nodiscard]] base::IdRuns lost() const { return base::IdRuns::from(lost_); }
  [[nodiscard]] base::IdRuns sound() const { return base::IdRuns::from(sound_); }

 private:
  struct Suspects {
    format::ContainerRecord record;
    std::vector<base::IdRun> runs;
  };

  // Finds the containers of the chunks.
  Result<void> place(const base::IdRuns& named) {
    suspects_.clear();
    located_.clear();
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    return catalog::for_each_location_of(
        txn, store_, named, [&](const catalog::LocationRecord& at) -> Result<bool> {
          VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn, store_, at.container));
          const auto here = named.intersect(base::IdRuns::from({{at.first, at.count}}));
          located_.insert(located_.end(), here.runs().begin(), here.runs().end());
          if (!record) return true;  // A check reports the missing record.
          auto& suspects = suspects_[at.container];
          suspects.record = *record;
          suspects.runs.insert(suspects.runs.end(), here.runs().begin(), here.runs().end());
          return true;
        });
  }

  Result<void> judge_unplaced(const base::IdRuns& named) {
    const auto unplaced = named.subtract(base::IdRuns::from(located_));
    if (unplaced.size() == 0) return {};
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto needed, needed_chunks(txn, store_));
    add(unplaced.intersect(needed), lost_);
    add(unplaced.subtract(needed), sound_);
    return {};
  }

  // Reads the containers. Returns the chunks of the containers moved meanwhile.
  Result<base::IdRuns> read() {
    std::vector<base::IdRun> moved;
    for (auto& [number, suspects] : suspects_) {
      const auto ids = base::IdRuns::from(std::move(suspects.runs));
      VARVE_TRY_ASSIGN(const auto second, read_again(codecs_, files_, folder_, segments_, store_,
                                                     suspects.record, ids));
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(const auto now, catalog::find_container(txn, store_, number));
      if (now && now->encode() == suspects.record.encode()) {
        add(second.lost, lost_);
        add(second.sound, sound_);
        VARVE_TRY(catalog::for_each_location_of(
            txn, store_, second.beside, [&](const catalog::LocationRecord& at) -> Result<bool> {
              const auto here = base::IdRuns::from({{at.first, at.count}});
              if (at.container == number) add(second.beside.intersect(here), lost_);
              return true;
            }));
      } else {
        add(ids, moved);
      }
    }
    return base::IdRuns::from(std::move(moved));
  }

  static void add(const base::IdRuns& ids, std::vector<base::IdRun>& runs) {
    runs.insert(runs.end(), ids.runs().begin(), ids.runs().end());
  }

  const format::DataCodecs& codecs_;
  const meta::Env& catalog_;
  io::FileSystem& files_;
  const std::string folder_;
  store::SegmentStore& segments_;
  const StoreId store_;
  std::map<ContainerNumber, Suspects> suspects_;
  std::vector<base::IdRun> located_;
  std::vector<base::IdRun> lost_;
  std::vector<base::IdRun> sound_;
};

// Returns the named chunks with ids of the store: the names may be forged.
base::IdRuns plausible(StoreId store, const base::IdRuns& named) {
  std::vector<base::IdRun> runs;
  for (const auto& run : named.runs()) {
    if (may_hold(store, run.first)) runs.push_back(run);
  }
  return base::IdRuns::from(std::move(runs));
}

}  // namespace

Result<base::IdRuns> needed_chunks(const meta::Txn& txn, StoreId store) {
  const bool is_pool = store == kPoolStore;
  std::vector<SeriesId> users{static_cast<SeriesId>(store)};
  if (is_pool) {
    VARVE_TRY_ASSIGN(users, owners_in(txn));
    std::erase(users, kPoolOwner);
  }
  base::IdRuns needed;
  for (const auto series : users) {
    VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series));
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      const auto chunks = catalog::version_chunks(txn, series, version.number);
      if (!chunks) continue;
      needed = needed.unite(is_pool ? catalog::pool_part(*chunks) : catalog::own_part(*chunks));
    }
  }
  return is_pool ? catalog::stored_ids(txn, needed) : needed;
}

base::IdRuns damaged_chunks(const ContainerVerdict& verdict, const base::IdRuns& located) {
  if (verdict.unavailable) return {};
  if (!verdict.header) return shows_loss(*verdict.error) ? located : base::IdRuns();
  std::vector<base::IdRun> damaged;
  for (const auto& fault : verdict.faults) {
    if (!fault.may_pass) damaged.insert(damaged.end(), fault.chunks.begin(), fault.chunks.end());
  }
  return base::IdRuns::from(std::move(damaged)).intersect(located);
}

Result<SecondRead> read_again(const format::DataCodecs& codecs, io::FileSystem& files,
                              const std::string& folder, store::SegmentStore& segments,
                              StoreId store, const format::ContainerRecord& record,
                              const base::IdRuns& suspects) {
  drop_cached_pages(files, folder + "/" + store::segment_path(record.segment), record);
  store::SegmentReader reader(segments, codecs.frames().keys());
  const auto verdict = verify_container(codecs, reader, store, record, VerifyLevel::kChunks);
  if (verdict.unavailable) return *verdict.unavailable;
  SecondRead second;
  second.lost = damaged_chunks(verdict, suspects);
  if (!verdict.header) return second;
  std::vector<base::IdRun> faulty;
  for (const auto& fault : verdict.faults) {
    faulty.insert(faulty.end(), fault.chunks.begin(), fault.chunks.end());
  }
  second.sound = suspects.subtract(base::IdRuns::from(std::move(faulty)));
  std::vector<base::IdRun> all;
  for (const auto& chunk : verdict.header->chunks) base::append_run(all, {chunk.id, 1});
  second.beside = damaged_chunks(verdict, base::IdRuns::from(std::move(all))).subtract(suspects);
  return second;
}

Result<Confirmed> confirm_lost_chunks(const format::DataCodecs& codecs, const meta::Env& catalog,
                                      io::FileSystem& files, const store::StoreOpener& open_store,
                                      const std::string& repository_path, const LostChunks& named) {
  std::vector<SeriesId> owners;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(owners, owners_in(txn));
  }
  const store::RepositoryPaths paths(repository_path);
  Confirmed result;
  for (const auto owner : owners) {
    const auto store = catalog::store_of(owner);
    const auto of_store = named.find(store);
    if (of_store == named.end()) continue;
    const auto ids = plausible(store, of_store->second);
    const auto folder = owner_folder(paths, owner);
    const auto segments = store::open_store(open_store, files, folder);
    Confirmation confirmation(codecs, catalog, files, folder, *segments, store);
    VARVE_TRY(confirmation.run(ids));
    const auto put = [store](LostChunks& all, base::IdRuns chunks) {
      if (chunks.size() != 0) all[store] = std::move(chunks);
    };
    put(result.lost, confirmation.lost());
    put(result.sound, confirmation.sound());
    put(result.undecided, ids.subtract(confirmation.lost()).subtract(confirmation.sound()));
  }
  return result;
}

std::uint64_t count_of(const LostChunks& lost) {
  std::uint64_t chunks = 0;
  for (const auto& [store, ids] : lost) chunks += ids.size();
  return chunks;
}

LostChunks without(const LostChunks& some, const LostChunks& others) {
  LostChunks rest;
  for (const auto& [store, ids] : some) {
    const auto other = others.find(store);
    auto left = other == others.end() ? ids : ids.subtract(other->second);
    if (left.size() != 0) rest[store] = std::move(left);
  }
  return rest;
}

Result<LostChunks> find_quarantined(const meta::Env& catalog) {
  LostChunks found;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto owners, owners_in(txn));
  for (const auto owner : owners) {
    const auto store = catalog::store_of(owner);
    VARVE_TRY_ASSIGN(auto chunks, catalog::find_quarantine(txn, store));
    if (chunks.size() != 0) found[store] = std::move(chunks);
  }
  return found;
}

Result<LostChunks> change_quarantine(const meta::Env& catalog, const LostChunks& lost,
                                     const LostChunks& sound) {
  VARVE_TRY_ASSIGN(const auto before, find_quarantined(catalog));
  auto changed = without(lost, before);
  for (const auto& [store, ids] : sound) {
    const auto known = before.find(store);
    if (known == before.end()) continue;
    const auto released = known->second.intersect(ids);
    if (released.size() != 0) changed[store] = changed[store].unite(released);
  }
  if (changed.empty()) return changed;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  for (const auto& [store, ids] : changed) {
    VARVE_TRY_ASSIGN(auto chunks, catalog::find_quarantine(txn, store));
    const auto damaged = lost.find(store);
    const auto right = sound.find(store);
    if (right != sound.end()) chunks = chunks.subtract(right->second);
    if (damaged != lost.end()) chunks = chunks.unite(damaged->second);
    VARVE_TRY(catalog::put_quarantine(txn, store, chunks));
  }
  VARVE_TRY(txn.commit());
  return changed;
}

}  // namespace varve::maintain
