// SPDX-License-Identifier: Apache-2.0
#include "layout/store_recovery.h"

#include <algorithm>
#include <map>
#include <variant>

#include "catalog/layout_records.h"
#include "catalog/location_table.h"

namespace varve::layout {
namespace {

Result<void> load_counters(const meta::Env& catalog, StoreId id, store::NumberSource& numbers) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto counters, catalog::find_counters(txn, id));
  numbers.set_next(counters.next_container);
  numbers.set_next(counters.next_segment);
  return {};
}

// A crash left the containers that the catalog does not know; nothing ever referred to them. A file
// that a container's record names is kept, even if the files' own records disagree.
Result<void> remove_leftovers(const meta::Env& catalog, StoreId id, store::SegmentStore& store) {
  std::map<SegmentNumber, std::uint64_t> bytes_of;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY(catalog::for_each_container(
        txn, id, [&](const format::ContainerRecord& record) -> Result<bool> {
          auto& bytes = bytes_of[record.segment];
          bytes = std::max(bytes, record.end());
          return true;
        }));
  }
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY(store.remove_unfinished(kind));
    VARVE_TRY_ASSIGN(const auto files, store.list(kind));
    for (const auto& file : files) {
      const auto it = bytes_of.find(std::get<SegmentNumber>(file));
      if (it == bytes_of.end()) {
        VARVE_TRY(store.remove(file));
        continue;
      }
      VARVE_TRY_ASSIGN(const auto length, store.size(file));
      if (length > it->second) VARVE_TRY(store.cut(file, it->second));
    }
  }
  return {};
}

}  // namespace

Result<void> recover_store(const meta::Env& catalog, StoreId id, store::SegmentStore& store,
                           store::NumberSource& numbers) {
  VARVE_TRY(store.prepare());
  VARVE_TRY(load_counters(catalog, id, numbers));
  return remove_leftovers(catalog, id, store);
}

}  // namespace varve::layout
