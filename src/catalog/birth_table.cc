// SPDX-License-Identifier: Apache-2.0
#include "catalog/birth_table.h"

#include "base/coding.h"
#include "base/random_bytes.h"
#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

// Returns whether the series has a page or a recipe stored by the version.
Result<bool> has_objects(const meta::Txn& txn, SeriesId series, VersionNumber number) {
  bool any = false;
  const auto prefix = meta::version_key(series, number);
  for (const auto table : {meta::catalog::kNodes, meta::catalog::kRecipes}) {
    VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, table));
    VARVE_TRY_ASSIGN(const auto at, cursor.seek(prefix));
    any = any || (at && at->key.starts_with(prefix));
  }
  return any;
}

Result<bool> is_used(const meta::Txn& txn, StoreId store, VersionNumber birth) {
  VARVE_TRY_ASSIGN(const bool any, has_chunks(txn, store, birth));
  if (any || store == kPoolStore) return any;
  return has_objects(txn, static_cast<SeriesId>(static_cast<std::uint32_t>(store)), birth);
}

}  // namespace

base::IdRuns ids_of_birth(VersionNumber birth) {
  return base::IdRuns::from({{ChunkId::make(birth, 0), UINT32_MAX}});
}

StoreId store_of_birth(StoreId own, VersionNumber birth) {
  return is_pool(ChunkId::make(birth, 0)) ? kPoolStore : own;
}

Result<format::Birth> new_birth(SeriesId series, VersionNumber version) {
  format::Birth birth;
  VARVE_TRY_ASSIGN(birth.mark, base::random_bytes<format::kBirthMarkBytes>());
  birth.series = series;
  birth.version = version;
  return birth;
}

Result<bool> has_chunks(const meta::Txn& txn, StoreId store, VersionNumber birth) {
  bool any = false;
  VARVE_TRY(for_each_location(txn, store, ChunkId::make(birth, 0),
                              [&](const LocationRecord& record) -> Result<bool> {
                                any = record.first.birth() == birth;
                                return false;
                              }));
  if (any || store != kPoolStore) return any;
  VARVE_TRY(for_each_alias_of(txn, ids_of_birth(birth), [&](const AliasRecord&) -> Result<bool> {
    any = true;
    return false;
  }));
  return any;
}

Result<std::optional<format::Birth>> find_birth(const meta::Txn& txn, StoreId store,
                                                VersionNumber birth) {
  if (!txn.has(meta::catalog::kBirths)) return std::optional<format::Birth>();
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kBirths, meta::birth_key(store, birth)));
  if (!value) return std::optional<format::Birth>();
  VARVE_TRY_ASSIGN(auto record, format::Birth::decode(*value));
  return std::optional(record);
}

Result<void> put_birth(meta::WriteTxn& txn, StoreId store, VersionNumber birth,
                       const format::Birth& record) {
  return txn.put(meta::catalog::kBirths, meta::birth_key(store, birth), record.encode());
}

Result<void> erase_unused_births(meta::WriteTxn& txn, StoreId store,
                                 const std::set<VersionNumber>& births) {
  for (const auto birth : births) {
    VARVE_TRY_ASSIGN(const bool used, is_used(txn, store, birth));
    if (!used) VARVE_TRY(txn.erase(meta::catalog::kBirths, meta::birth_key(store, birth)));
  }
  return {};
}

Result<format::Births> births_of(const meta::Txn& txn, StoreId own, const base::IdRuns& ids) {
  format::Births births;
  std::optional<VersionNumber> last;
  for (const auto& run : ids.runs()) {
    const auto birth = run.first.birth();
    if (birth == last) continue;
    last = birth;
    VARVE_TRY_ASSIGN(const auto record, find_birth(txn, store_of_birth(own, birth), birth));
    if (record) births.emplace(birth, *record);
  }
  return births;
}

Result<format::Births> births_named_by(const meta::Txn& txn, SeriesId series,
                                       VersionNumber number) {
  format::Births births;
  VARVE_TRY(for_each_birth(txn, store_of(series),
                           [&](VersionNumber birth, const format::Birth& record) -> Result<bool> {
                             if (birth <= number) births.emplace(birth, record);
                             return birth < number;
                           }));
  const auto chunks = version_chunks(txn, series, number);
  if (!chunks) return births;  // A damaged value, to be reported by a check.
  VARVE_TRY_ASSIGN(auto named, births_of(txn, store_of(series), *chunks));
  births.merge(named);
  return births;
}

Result<void> for_each_birth(
    const meta::Txn& txn, StoreId store,
    const std::function<Result<bool>(VersionNumber, const format::Birth&)>& visit) {
  if (!txn.has(meta::catalog::kBirths)) return {};
  const auto each = [&](std::string_view key, std::string_view value) -> Result<bool> {
    if (key.size() != 2 * sizeof(std::uint32_t)) {
      return Error(ErrorCode::kCorrupt, "catalog: a birth has a bad key");
    }
    VARVE_TRY_ASSIGN(const auto record, format::Birth::decode(value));
    const auto birth = base::load_be32(key.substr(sizeof(std::uint32_t)));
    return visit(static_cast<VersionNumber>(birth), record);
  };
  return meta::for_each_prefix(txn, meta::catalog::kBirths, meta::store_key(store), each);
}

format::BirthMarks marks_of(const format::Births& births) {
  format::BirthMarks marks;
  for (const auto& [number, birth] : births) marks.emplace(number, birth.mark);
  return marks;
}

}  // namespace varve::catalog
