// SPDX-License-Identifier: Apache-2.0
#include "layout/pool_merger.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "catalog/location_table.h"
#include "catalog/series_catalog.h"

namespace varve::layout {

Result<bool> PoolMerger::run() {
  auto& pool = *parts_.pool;
  std::uint64_t deletions = 0;
  {
    const PoolStore::Exclusive exclusive(pool);
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(const bool is_due, catalog::pool_merging_is_due(txn));
    if (!is_due) return true;
    deletions = pool.deletions();
  }
  VARVE_TRY_ASSIGN(const auto candidates, find_candidates());
  for (auto first = candidates.begin(); first != candidates.end();) {
    if (parts_.stop && parts_.stop()) return false;
    auto last = first;
    std::uint64_t bytes = 0;
    while (last != candidates.end() && last->birth == first->birth &&
           (last == first || bytes + last->raw_bytes <= parts_.step_bytes_max)) {
      bytes += last->raw_bytes;
      ++last;
    }
    VARVE_TRY(merge({first, last}));
    first = last;
  }
  const PoolStore::Exclusive exclusive(pool);
  if (pool.deletions() != deletions) return false;  // There may be further candidates.
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY(catalog::put_pool_merging(txn, false));
  VARVE_TRY(txn.commit());
  return true;
}

// A container is not sparse if a single version uses more than the share. The remaining containers
// may be sparse, if their versions use the same part.
Result<std::vector<PoolMerger::Candidate>> PoolMerger::find_candidates() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  std::unordered_map<ContainerNumber, std::uint64_t> most;
  VARVE_TRY(catalog::for_each_pool_use(
      txn, [&](SeriesId, VersionNumber, const std::vector<catalog::PoolUse>& uses) -> Result<bool> {
        for (const auto& use : uses) {
          auto& bytes = most[use.container];
          bytes = std::max(bytes, use.bytes);
        }
        return true;
      }));
  std::vector<Candidate> found;
  VARVE_TRY(catalog::for_each_container(
      txn, kPoolStore, [&](const format::ContainerRecord& record) -> Result<bool> {
        const auto used = most.find(record.number);
        if (used != most.end() &&
            used->second * 1000 < record.raw_bytes * parts_.live_permille_max &&
            !parts_.pool->is_pinned(record.number)) {
          found.push_back({record.number, record.birth, record.raw_bytes});
        }
        return true;
      }));
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.birth < b.birth; });
  return found;
}

Result<void> PoolMerger::merge(const std::vector<Candidate>& candidates) {
  auto& pool = *parts_.pool;
  const PoolStore::Exclusive exclusive(pool);
  std::vector<ContainerNumber> numbers;
  for (const auto& one : candidates) numbers.push_back(one.number);
  const auto retired = pool.retire(numbers);
  auto merged = [&]() -> Result<void> {
    if (retired.empty()) return {};
    const auto birth = candidates.front().birth;
    std::set<ContainerNumber> containers(retired.begin(), retired.end());
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(auto use, find_use(txn, containers, birth, {}));
    for (const auto& one : candidates) {
      if (use.live_bytes[one.number] * 1000 >= one.raw_bytes * parts_.live_permille_max) {
        containers.erase(one.number);
      }
    }
    if (use.live_bytes.size() != containers.size()) {
      VARVE_TRY_ASSIGN(use, find_use(txn, containers, birth, {}));
    }
    if (use.chunks.size() == 0) return {};  // All were freed meanwhile, or are not sparse.
    MoveStep step;
    step.chunks = in_order_of_use(use);
    step.dropped = use.chunks.subtract(use.live);
    step.role = catalog::SegmentRole::kNew;
    step.version = birth;
    step.before_freeing = parts_.before_freeing;
    step.at_commit = [&](meta::WriteTxn& commit) { return update(commit, use, containers); };
    VARVE_TRY(parts_.catalog->prepare_write());  // O37: before the first new file.
    ChunkMover mover(pool.store_parts(), step);
    VARVE_TRY_ASSIGN(const auto outcome, mover.run());
    if (parts_.after_step) parts_.after_step(outcome, step.dropped);
    return {};
  }();
  pool.release(retired);
  return merged;
}

// First come the chunks of the oldest users; among them, chunks with the same users are neighbours.
std::vector<base::IdRun> PoolMerger::in_order_of_use(const ContainerUse& use) {
  struct Users {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint64_t all = 0;  // A hash of the users; a collision only costs locality.
  };
  std::vector<Users> users(use.live.size());
  std::uint32_t number = 0;
  for (const auto& [owner, chunks] : use.of) {
    ++number;
    for (const auto& run : chunks.runs()) {
      const auto rank = use.live.count_below(run.first.value);
      for (auto i = rank; i < rank + run.count; ++i) {
        auto& one = users[i];
        if (one.first == 0) one.first = number;
        one.last = number;
        one.all = (one.all + number) * 0x9e3779b97f4a7c15U;
      }
    }
  }
  std::vector<std::uint64_t> order(users.size());
  for (std::uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    const auto key = [&](std::uint64_t i) {
      return std::tuple(users[i].first, users[i].last, users[i].all);
    };
    return key(a) < key(b);
  });
  std::vector<base::IdRun> runs;
  for (const auto rank : order) base::append_run(runs, {use.live.select(rank), 1});
  return runs;
}

// Counts the users of the old and the new containers again, by the present places of the chunks. A
// damaged chunk stays in the old container.
Result<void> PoolMerger::update(meta::WriteTxn& txn, const ContainerUse& use,
                                const std::set<ContainerNumber>& containers) {
  std::map<ContainerNumber, std::uint32_t> users;
  for (const auto container : containers) users[container] = 0;
  for (const auto& [owner, chunks] : use.of) {
    VARVE_TRY_ASSIGN(auto uses, catalog::find_pool_use(txn, owner.series, owner.version));
    std::erase_if(uses, [&](const auto& one) { return containers.contains(one.container); });
    VARVE_TRY_ASSIGN(const auto now, catalog::pool_use_of(txn, chunks));
    for (const auto& one : now) ++users[one.container];
    uses.insert(uses.end(), now.begin(), now.end());
    std::sort(uses.begin(), uses.end(),
              [](const auto& a, const auto& b) { return a.container < b.container; });
    VARVE_TRY(catalog::put_pool_use(txn, owner.series, owner.version, uses));
  }
  for (const auto& [container, count] : users) {
    VARVE_TRY(catalog::put_pool_users(txn, container, count));
  }
  return {};
}

}  // namespace varve::layout
