// SPDX-License-Identifier: Apache-2.0
#include "layout/store_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"

namespace varve::layout {
namespace {

Result<void> load_counters(const meta::Env& catalog, StoreId id, store::NumberSource& numbers) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto counters, catalog::find_counters(txn, id));
  // An older record of the counters must not give numbers that are in use: a new file would
  // overwrite an old one.
  const auto least = catalog::least_counters(txn, id);
  numbers.set_next(std::max(counters.next_container, least.next_container));
  numbers.set_next(std::max(counters.next_segment, least.next_segment));
  return {};
}

// A crash left the containers that the catalog does not know; nothing ever referred to them. A file
// that a container's record names is kept, even if the files' own records disagree. If other files
// are missing, the store may be older than the catalog, as after an interrupted copy: then unknown
// files may be the only copy of their data, and stay for `varve repair`.
// New files then get numbers above theirs.
Result<void> remove_leftovers(const meta::Env& catalog, StoreId id, store::SegmentStore& store,
                              store::NumberSource& numbers) {
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
  struct Present {
    store::StoredFile file;
    std::uint64_t bytes = 0;
  };
  std::vector<Present> present;
  std::size_t whole = 0;
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY(store.remove_unfinished(kind));
    VARVE_TRY_ASSIGN(const auto files, store.list(kind));
    for (const auto& file : files) {
      VARVE_TRY_ASSIGN(const auto bytes, store.size(file));
      present.push_back({file, bytes});
      const auto known = bytes_of.find(std::get<SegmentNumber>(file));
      if (known != bytes_of.end() && bytes >= known->second) ++whole;
    }
  }
  if (whole != bytes_of.size()) {
    base::log(
        base::LogLevel::kWarning,
        fmt::format("{}: files that the catalog names are missing or too short; files that it "
                    "does not name are kept; run `varve check`",
                    store.describe()));
    auto next = static_cast<std::uint32_t>(numbers.next_segment());
    for (const auto& one : present) {
      const auto number = static_cast<std::uint32_t>(std::get<SegmentNumber>(one.file));
      next = std::max(next, (number & ~kVolumeBit) + 1);
    }
    numbers.set_next(SegmentNumber{next});
    return {};
  }
  for (const auto& [file, bytes] : present) {
    const auto known = bytes_of.find(std::get<SegmentNumber>(file));
    if (known == bytes_of.end()) {
      VARVE_TRY(store.remove(file));
    } else if (bytes > known->second) {
      VARVE_TRY(store.cut(file, known->second));
    }
  }
  return {};
}

}  // namespace

Result<void> prepare_store(const meta::Env& catalog, StoreId id, store::SegmentStore& store,
                           store::NumberSource& numbers) {
  VARVE_TRY(store.prepare());
  return load_counters(catalog, id, numbers);
}

Result<void> recover_store(const meta::Env& catalog, StoreId id, store::SegmentStore& store,
                           store::NumberSource& numbers) {
  VARVE_TRY(prepare_store(catalog, id, store, numbers));
  return remove_leftovers(catalog, id, store, numbers);
}

}  // namespace varve::layout
