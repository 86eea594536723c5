// SPDX-License-Identifier: Apache-2.0
#include "layout/store_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <variant>

#include "base/log.h"
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

// Returns whether a file that the catalog names is missing or too short.
Result<bool> lacks_data(store::SegmentStore& store,
                        const std::map<SegmentNumber, std::uint64_t>& bytes_of) {
  std::map<SegmentNumber, std::uint64_t> missing = bytes_of;
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY_ASSIGN(const auto files, store.list(kind));
    for (const auto& file : files) {
      const auto it = missing.find(std::get<SegmentNumber>(file));
      if (it == missing.end()) continue;
      VARVE_TRY_ASSIGN(const auto length, store.size(file));
      if (length >= it->second) missing.erase(it);
    }
  }
  return !missing.empty();
}

// A crash left the containers that the catalog does not know; nothing ever referred to them. A file
// that a container's record names is kept, even if the files' own records disagree. If other files
// are missing, the store may be older than the catalog, as after an interrupted copy: then unknown
// files may be the only copy of their data, and stay for `varve repair`.
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
  VARVE_TRY_ASSIGN(const bool lacks, lacks_data(store, bytes_of));
  if (lacks) {
    base::log(base::LogLevel::kWarning,
              fmt::format("series {}: files that the catalog names are missing or too short; files "
                          "that it does not name are kept; run `varve check`",
                          static_cast<std::uint32_t>(id)));
  }
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY(store.remove_unfinished(kind));
    if (lacks) continue;
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
