// SPDX-License-Identifier: Apache-2.0
#include "layout/pool_store.h"

#include <algorithm>
#include <utility>

#include "catalog/birth_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "layout/store_recovery.h"

namespace varve::layout {

Result<void> PoolDeletion::apply(meta::WriteTxn& txn) const {
  for (const auto& owner : gone) {
    VARVE_TRY(catalog::put_pool_use(txn, owner.series, owner.version, {}));
  }
  bool any_stays = false;
  for (const auto& [container, left] : users) {
    VARVE_TRY(catalog::put_pool_users(txn, container, left));
    any_stays = any_stays || left != 0;
  }
  if (any_stays) VARVE_TRY(catalog::put_pool_merging(txn, true));
  VARVE_TRY(ledger.apply(txn));
  std::set<VersionNumber> births;
  for (const auto& run : dead.runs()) births.insert(run.first.birth());
  return catalog::erase_unused_births(txn, kPoolStore, births);
}

void begin_pool_numbers(store::NumberSource& numbers) {
  const auto next = static_cast<std::uint32_t>(numbers.next_container());
  numbers.set_next(static_cast<ContainerNumber>(std::max(next, kPoolBit)));
}

/// Thread-safe.
class PoolStore::StreamBirths {
 public:
  /// A birth, in use as long as the object lives.
  class Use {
   public:
    Use(std::shared_ptr<StreamBirths> births, VersionNumber birth)
        : births_(std::move(births)), birth_(birth) {
      births_->used_.insert(birth_);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      const std::lock_guard lock(births_->mutex_);
      births_->used_.erase(births_->used_.find(birth_));
    }
    [[nodiscard]] VersionNumber birth() const { return birth_; }

   private:
    const std::shared_ptr<StreamBirths> births_;
    const VersionNumber birth_;
  };

  /// Takes the birth of a new stream.
  static Result<std::shared_ptr<const Use>> take(const std::shared_ptr<StreamBirths>& births,
                                                 const meta::Env& catalog) {
    // Until the commit, the births from the next birth on count as used. No thread holds the mutex
    // while waiting for the commit.
    VARVE_TRY_ASSIGN(const auto before, use(births, [&] { return next(catalog); }));
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
    VARVE_TRY_ASSIGN(const auto birth, catalog::take_pool_birth(txn));
    VARVE_TRY(txn.commit());
    return use(births, [birth] { return Result<VersionNumber>(birth); });
  }
  /// Returns the first birth in use, or else the next new birth.
  Result<VersionNumber> first(const meta::Env& catalog) {
    const std::lock_guard lock(mutex_);
    return used_.empty() ? next(catalog) : *used_.begin();
  }

 private:
  static Result<VersionNumber> next(const meta::Env& catalog) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    return catalog::next_pool_birth(txn);
  }
  template <typename Birth>
  static Result<std::shared_ptr<const Use>> use(const std::shared_ptr<StreamBirths>& births,
                                                const Birth& birth) {
    const std::lock_guard lock(births->mutex_);
    VARVE_TRY_ASSIGN(const auto number, birth());
    return std::make_shared<const Use>(births, number);
  }

  std::mutex mutex_;
  std::multiset<VersionNumber> used_;
};

PoolStore::PoolStore(const PoolParts& parts, std::unique_ptr<store::SegmentStore> segments)
    : parts_(parts),
      segments_(std::move(segments)),
      chunks_(parts.catalog, *segments_, parts.codec, kPoolStore, parts.open_files, parts.damage),
      births_(std::make_shared<StreamBirths>()) {}

Result<std::unique_ptr<PoolStore>> PoolStore::open(const PoolParts& parts,
                                                   std::unique_ptr<store::SegmentStore> segments) {
  std::unique_ptr<PoolStore> pool(new PoolStore(parts, std::move(segments)));
  if (parts.read_only) return pool;
  if (parts.settled) {
    VARVE_TRY(prepare_store(parts.catalog, kPoolStore, *pool->segments_, pool->numbers_));
  } else {
    VARVE_TRY(recover_store(parts.catalog, kPoolStore, *pool->segments_, parts.codec.keys(),
                            pool->numbers_));
  }
  begin_pool_numbers(pool->numbers_);
  pool->first_own_ = pool->numbers_.next_segment();
  return pool;
}

Result<std::unique_ptr<ChunkStream>> PoolStore::start_stream(const PoolOwner& owner) {
  VARVE_TRY_ASSIGN(const auto birth, StreamBirths::take(births_, parts_.catalog));
  auto parts = store_parts();
  // The stream holds the use of the birth.
  parts.on_container = [this, owner, birth](ContainerNumber container) {
    const std::lock_guard lock(pins_mutex_);
    add_pin(owner, container, true);
  };
  parts.at_sync = [owner](meta::WriteTxn& commit) {
    return catalog::note_pool_chunks(commit, owner.series, owner.version);
  };
  auto stream = std::make_unique<ChunkStream>(parts);
  VARVE_TRY(stream->begin(birth->birth(), owner.series, owner.version));
  return stream;
}

void PoolStore::add_pin(const PoolOwner& owner, ContainerNumber container, bool is_stored) {
  const auto [pin, added] = pins_[owner].containers.try_emplace(container, is_stored);
  if (added) ++pinned_[container];
  pin->second = pin->second || is_stored;
}

void PoolStore::remove_pin(const PoolOwner& owner, ContainerNumber container) {
  if (pins_[owner].containers.erase(container) == 0) return;
  const auto count = pinned_.find(container);
  if (--count->second == 0) pinned_.erase(count);
}

// Pins first and then checks whether the container is stored: an earlier deletion may have freed
// the container, and a later deletion sees the pin. Until the check of one thread is finished,
// further threads of the same version check too.
bool PoolStore::pin(const PoolOwner& owner, ContainerNumber container) {
  {
    const std::lock_guard lock(pins_mutex_);
    if (retired_.contains(container)) return false;
    auto& pins = pins_[owner].containers;
    const auto known = pins.find(container);
    if (known != pins.end() && known->second) return true;
    add_pin(owner, container, false);
  }
  const auto txn = meta::ReadTxn::begin(parts_.catalog);
  const auto found = txn ? catalog::find_container(*txn, kPoolStore, container)
                         : Result<std::optional<format::ContainerRecord>>(txn.error());
  if (!found) return false;  // The pin stays: another thread may have found the container.
  const std::lock_guard lock(pins_mutex_);
  if (*found) {
    add_pin(owner, container, true);
  } else {
    remove_pin(owner, container);
  }
  return found->has_value();
}

void PoolStore::pin_all(const PoolOwner& owner) {
  const std::lock_guard lock(pins_mutex_);
  if (!std::exchange(pins_[owner].all, true)) ++pinned_all_;
  note_left_behind();  // unpin() cannot name containers held only by this version.
}

bool PoolStore::is_pinned(ContainerNumber container) {
  const std::lock_guard lock(pins_mutex_);
  return pinned_all_ != 0 || pinned_.contains(container);
}

std::vector<ContainerNumber> PoolStore::unpin(const PoolOwner& owner) {
  const std::lock_guard lock(pins_mutex_);
  const auto known = pins_.find(owner);
  if (known == pins_.end()) return {};
  const auto& pins = known->second;
  std::vector<ContainerNumber> containers;
  for (const auto& [container, is_stored] : pins.containers) containers.push_back(container);
  for (const auto container : containers) remove_pin(owner, container);
  if (pins.all) --pinned_all_;
  pins_.erase(known);
  return containers;
}

Result<void> PoolStore::add_users(meta::WriteTxn& txn, const PoolOwner& owner,
                                  const std::vector<catalog::PoolUse>& uses) {
  VARVE_TRY(catalog::put_pool_use(txn, owner.series, owner.version, uses));
  for (const auto& use : uses) {
    VARVE_TRY_ASSIGN(const auto users, catalog::find_pool_users(txn, use.container));
    VARVE_TRY(catalog::put_pool_users(txn, use.container, users + 1));
  }
  return {};
}

Result<void> PoolStore::take_users(const meta::Txn& txn, const std::vector<PoolOwner>& gone,
                                   Users& users) {
  for (const auto& owner : gone) {
    VARVE_TRY_ASSIGN(const auto uses, catalog::find_pool_use(txn, owner.series, owner.version));
    for (const auto& use : uses) {
      auto known = users.find(use.container);
      if (known == users.end()) {
        VARVE_TRY_ASSIGN(const auto count, catalog::find_pool_users(txn, use.container));
        known = users.emplace(use.container, count).first;
      }
      if (known->second == 0) {
        return Error(ErrorCode::kCorrupt,
                     "catalog: a container of the pool has fewer users than versions that use it; "
                     "nothing was deleted; run `varve repair`");
      }
      --known->second;
    }
  }
  return {};
}

Result<PoolDeletion> PoolStore::plan_deletion(const meta::Txn& txn,
                                              const std::vector<PoolOwner>& gone) {
  ++deletions_;
  Users users;
  VARVE_TRY(take_users(txn, gone, users));
  return plan(txn, gone, std::move(users), Retire::kYes);
}

Result<PoolDeletion> PoolStore::forecast_deletion(const meta::Txn& txn,
                                                  const std::vector<PoolOwner>& gone,
                                                  const std::vector<PoolOwner>& before) {
  Users users;
  VARVE_TRY(take_users(txn, before, users));
  // The deletion does not count containers left without users by `before`.
  std::erase_if(users, [](const auto& entry) { return entry.second == 0; });
  VARVE_TRY(take_users(txn, gone, users));
  return plan(txn, gone, std::move(users), Retire::kNo);
}

void PoolStore::divide(PoolDeletion& plan, Retire retire) {
  const std::lock_guard lock(pins_mutex_);
  for (const auto& [container, left] : plan.users) {
    if (left != 0) continue;
    if (pinned_all_ == 0 && !pinned_.contains(container)) {
      plan.dying.push_back(container);
      continue;
    }
    if (plan.waiting_for) continue;
    const auto holder = std::find_if(pins_.begin(), pins_.end(), [at = container](const auto& one) {
      return one.second.all || one.second.containers.contains(at);
    });
    if (holder != pins_.end()) plan.waiting_for = holder->first;
  }
  if (retire == Retire::kYes) retired_.insert(plan.dying.begin(), plan.dying.end());
}

Result<PoolDeletion> PoolStore::plan(const meta::Txn& txn, std::vector<PoolOwner> gone, Users users,
                                     Retire retire) {
  PoolDeletion plan{
      SegmentLedger(txn, kPoolStore), std::move(gone), std::move(users), {}, {}, 0, 0, 0, {}};
  divide(plan, retire);
  auto planned = remove(txn, plan);
  if (planned) planned = plan.ledger.finish();
  if (planned) return plan;
  if (retire == Retire::kYes) keep(plan);
  return std::move(planned).error();
}

Result<void> PoolStore::remove(const meta::Txn& txn, PoolDeletion& plan) {
  const std::set<ContainerNumber> dying(plan.dying.begin(), plan.dying.end());
  std::set<VersionNumber> births;
  for (const auto& [container, left] : plan.users) {
    if (left != 0) continue;
    VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn, kPoolStore, container));
    if (!record) continue;
    if (dying.contains(container)) {
      births.insert(record->birth);
    } else {
      plan.waiting_bytes += record->live_bytes;
    }
  }
  // The chunks of a container were all born in the same stream, in the order of the container's
  // ids.
  std::vector<base::IdRun> dead;
  for (const auto birth : births) {
    VARVE_TRY(catalog::for_each_location(txn, kPoolStore, ChunkId::make(birth, 0),
                                         [&](const catalog::LocationRecord& at) -> Result<bool> {
                                           if (at.first.birth() != birth) return false;
                                           if (!dying.contains(at.container)) return true;
                                           auto removed = plan.ledger.remove(at, {});
                                           if (!removed) return std::move(removed).error();
                                           dead.push_back({at.first, at.count});
                                           plan.chunks += at.count;
                                           plan.chunk_bytes += at.raw_bytes;
                                           return true;
                                         }));
  }
  plan.dead = base::IdRuns::from(std::move(dead));
  return {};
}

Result<void> PoolStore::free(const PoolDeletion& plan) {
  auto freed = chunks_.free(plan.ledger.cuts());
  if (!freed) note_left_behind();
  release(plan.dying);
  return freed;
}

// A failed commit may still have happened (O14).
void PoolStore::keep(const PoolDeletion& plan) {
  if (!plan.dying.empty()) note_left_behind();
  release(plan.dying);
}

std::vector<ContainerNumber> PoolStore::retire(const std::vector<ContainerNumber>& containers) {
  const std::lock_guard lock(pins_mutex_);
  std::vector<ContainerNumber> retired;
  if (pinned_all_ != 0) return retired;
  for (const auto container : containers) {
    if (!pinned_.contains(container) && retired_.insert(container).second) {
      retired.push_back(container);
    }
  }
  return retired;
}

void PoolStore::release(const std::vector<ContainerNumber>& containers) {
  const std::lock_guard lock(pins_mutex_);
  for (const auto container : containers) retired_.erase(container);
}

StoreParts PoolStore::store_parts() {
  return {parts_.catalog, *segments_, parts_.codec,   parts_.compressors,
          chunks_,        numbers_,   parts_.metrics, true};
}

Result<base::IdRuns> PoolStore::sweep(const std::vector<ContainerNumber>& containers) {
  if (containers.empty()) return base::IdRuns();
  const Exclusive exclusive(*this);
  VARVE_TRY_ASSIGN(const auto snapshot, meta::ReadTxn::begin(parts_.catalog));
  Users users;
  for (const auto container : containers) {
    VARVE_TRY_ASSIGN(const auto count, catalog::find_pool_users(snapshot, container));
    if (count != 0) continue;
    VARVE_TRY_ASSIGN(const auto known, catalog::find_container(snapshot, kPoolStore, container));
    if (known) users[container] = 0;
  }
  VARVE_TRY_ASSIGN(const auto plan, this->plan(snapshot, {}, std::move(users), Retire::kYes));
  if (plan.dying.empty()) return base::IdRuns();
  auto committed = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(parts_.catalog));
    VARVE_TRY(plan.apply(txn));
    return txn.commit();
  }();
  if (!committed) {
    keep(plan);
    return std::move(committed).error();
  }
  VARVE_TRY(free(plan));
  return plan.dead;
}

bool PoolStore::has_left_behind() {
  if (parts_.read_only || left_behind_) return left_behind_;
  const auto looked = [&]() -> Result<bool> {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(parts_.catalog));
    for (auto file = first_own_; file < numbers_.next_segment(); file = number_after(file)) {
      VARVE_TRY_ASSIGN(const auto record, catalog::find_segment(txn, kPoolStore, file));
      if (record) continue;
      const auto size = segments_->size(file);
      if (size || size.error().code() != ErrorCode::kNotFound) return true;
    }
    return false;
  }();
  return !looked || *looked;
}

Result<VersionNumber> PoolStore::complete_below() { return births_->first(parts_.catalog); }

Result<std::vector<ContainerNumber>> PoolStore::unused() {
  std::set<ContainerNumber> used;
  std::vector<ContainerNumber> unused;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(parts_.catalog));
  VARVE_TRY(catalog::for_each_pool_users(
      txn, [&](ContainerNumber container, std::uint32_t) -> Result<bool> {
        used.insert(container);
        return true;
      }));
  VARVE_TRY(catalog::for_each_container(txn, kPoolStore,
                                        [&](const format::ContainerRecord& record) -> Result<bool> {
                                          if (!used.contains(record.number))
                                            unused.push_back(record.number);
                                          return true;
                                        }));
  return unused;
}

}  // namespace varve::layout
