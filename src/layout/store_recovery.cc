// SPDX-License-Identifier: Apache-2.0
#include "layout/store_recovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <variant>
#include <vector>

#include "base/coding.h"
#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "format/container_fixed_header.h"
#include "format/container_record.h"

namespace varve::layout {
namespace {

Result<void> load_counters(const meta::Env& catalog, StoreId id, store::NumberSource& numbers) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto counters, catalog::find_counters(txn, id));
  // An older record of the counters must not give numbers in use: a new file would overwrite an
  // existing file.
  const auto least = catalog::least_counters(txn, id);
  numbers.set_next(std::max(counters.next_container, least.next_container));
  numbers.set_next(std::max(counters.next_segment, least.next_segment));
  return {};
}

/// The files named in the catalog.
struct KnownFile {
  format::ContainerRecord first;  // The container with the lowest offset.
  std::uint64_t bytes = 0;
};

/// Returns whether the file has the container that the catalog expects first. If not, the folder
/// may belong to a different series, or be older.
Result<bool> has_own_container(StoreId id, store::SegmentStore& store,
                               const format::ContainerKeys* keys, const KnownFile& known) {
  VARVE_TRY_ASSIGN(const auto file, store.open(known.first.segment, store::ReadMode::kCached));
  std::array<std::byte, format::kContainerFixedHeaderBytes> start{};
  VARVE_TRY_ASSIGN(const std::size_t got, file->read_at(known.first.offset, start));
  const auto header = format::decode_fixed_header(std::span(start).first(got), keys);
  if (!header || header->store != id || header->number != known.first.number) return false;
  if (!header->seal) return !known.first.checksum || known.first.checksum == header->checksum;
  return base::load_le<std::uint64_t>(header->seal->salt.data()) == known.first.salt_start;
}

/// Returns whether a file has bytes unknown to the catalog.
bool has_leftovers(const std::map<SegmentNumber, KnownFile>& known, SegmentNumber file,
                   std::uint64_t bytes) {
  const auto its = known.find(file);
  return its == known.end() || bytes > its->second.bytes;
}

// Containers unknown to the catalog were left by a crash; nothing ever referred to them. A file
// named in a container's record is kept, even if the files' own records disagree. The store may be
// older than the catalog, as after an interrupted copy, or belong to a different series, if known
// files are missing or have different containers. Then unknown bytes may be the only copy of their
// data, and stay for `varve repair`. New files then get higher numbers than the unknown files.
Result<void> remove_leftovers(const meta::Env& catalog, StoreId id, store::SegmentStore& store,
                              const format::ContainerKeys* keys, store::NumberSource& numbers) {
  std::map<SegmentNumber, KnownFile> known;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY(catalog::for_each_container(
        txn, id, [&](const format::ContainerRecord& record) -> Result<bool> {
          const auto [its, is_new] = known.try_emplace(record.segment, KnownFile{record, 0});
          if (record.offset < its->second.first.offset) its->second.first = record;
          its->second.bytes = std::max(its->second.bytes, record.end());
          return true;
        }));
  }
  struct Present {
    store::StoredFile file;
    std::uint64_t bytes = 0;
  };
  std::vector<Present> present;
  std::size_t whole = 0;
  bool any_left = false;
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY(store.remove_unfinished(kind));
    VARVE_TRY_ASSIGN(const auto files, store.list(kind));
    for (const auto& file : files) {
      VARVE_TRY_ASSIGN(const auto bytes, store.size(file));
      present.push_back({file, bytes});
      const auto number = std::get<SegmentNumber>(file);
      const auto its = known.find(number);
      if (its != known.end() && bytes >= its->second.bytes) ++whole;
      any_left = any_left || has_leftovers(known, number, bytes);
    }
  }
  if (!any_left && whole == known.size()) return {};
  bool is_own = whole == known.size();
  for (auto its = known.begin(); is_own && its != known.end(); ++its) {
    VARVE_TRY_ASSIGN(is_own, has_own_container(id, store, keys, its->second));
  }
  if (!is_own) {
    base::log(
        base::LogLevel::kWarning,
        fmt::format("{}: files that the catalog names are missing, too short or other ones; bytes "
                    "that it does not name are kept; run `varve check`",
                    store.describe()));
    auto next = numbers.next_segment();
    for (const auto& one : present) {
      next = std::max(next, number_after(without_kind(std::get<SegmentNumber>(one.file))));
    }
    numbers.set_next(next);
    return {};
  }
  for (const auto& [file, bytes] : present) {
    const auto its = known.find(std::get<SegmentNumber>(file));
    if (its == known.end()) {
      VARVE_TRY(store.remove(file));
    } else if (bytes > its->second.bytes) {
      VARVE_TRY(store.cut(file, its->second.bytes));
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
                           const format::ContainerKeys* keys, store::NumberSource& numbers) {
  VARVE_TRY(prepare_store(catalog, id, store, numbers));
  return remove_leftovers(catalog, id, store, keys, numbers);
}

}  // namespace varve::layout
