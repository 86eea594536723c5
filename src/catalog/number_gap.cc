// SPDX-License-Identifier: Apache-2.0
#include "catalog/number_gap.h"

#include <cstdint>
#include <vector>

#include "base/coding.h"
#include "base/ids.h"
#include "base/random_bytes.h"
#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"

namespace varve::catalog {

namespace {

// Numbers of containers, files and births have one bit less.
constexpr std::uint32_t kNumberMax = UINT32_MAX >> 2;

template <typename Number>
Number raised(Number next, std::uint32_t gap) {
  const auto number = static_cast<std::uint32_t>(next);
  return (number & kNumberMax) > kNumberMax - gap ? next : static_cast<Number>(number + gap);
}

Result<void> leave_gap(meta::WriteTxn& txn, std::uint32_t gap) {
  VARVE_TRY_ASSIGN(auto all, list_series(txn));
  std::vector<StoreId> stores{kPoolStore};
  for (auto& series : all) {
    stores.push_back(store_of(series.id));
    series.next_number = raised(series.next_number, gap);
    VARVE_TRY(put_series(txn, series));
  }
  for (const auto store : stores) {
    VARVE_TRY_ASSIGN(const auto counters, find_counters(txn, store));
    if (counters.next_segment == SegmentNumber{}) continue;  // A store without files.
    VARVE_TRY(raise_counters(
        txn, store, {raised(counters.next_container, gap), raised(counters.next_segment, gap)}));
  }
  VARVE_TRY_ASSIGN(const auto birth, next_pool_birth(txn));
  if (static_cast<std::uint32_t>(birth) == kPoolBit) return {};  // The pool has no births yet.
  return raise_pool_birth(txn, raised(birth, gap));
}

}  // namespace

Result<void> leave_random_gap(const meta::Env& catalog) {
  constexpr std::uint32_t kGapMin = 257;
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<sizeof(std::uint16_t)>());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  VARVE_TRY(leave_gap(txn, kGapMin + base::load_le<std::uint16_t>(random.data())));
  return txn.commit();
}

}  // namespace varve::catalog
