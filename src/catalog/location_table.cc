// SPDX-License-Identifier: Apache-2.0
#include "catalog/location_table.h"

#include "base/coding.h"
#include "base/ids.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {
Error damaged_table(const char* what) {
  return {ErrorCode::kCorrupt, std::string("catalog: ") + what + " is damaged"};
}
constexpr std::size_t kSeriesKeyBytes = 4;
}  // namespace

std::string LocationRecord::encode() const {
  std::string out;
  base::ByteWriter w(out);
  w.varint(count);
  w.varint(raw_bytes);
  w.varint(static_cast<std::uint32_t>(container));
  w.varint(index);
  return out;
}

Result<LocationRecord> LocationRecord::decode(ChunkId first, std::string_view bytes) {
  base::ByteReader r(bytes);
  const std::uint64_t count = r.varint();
  const std::uint64_t raw = r.varint();
  const std::uint64_t container = r.varint();
  const std::uint64_t index = r.varint();
  // Bounds each value first, so that no sum overflows.
  constexpr std::uint64_t kChunksMax = 1ULL << 17;  // No container holds more.
  if (!r.done() || count == 0 || count > kChunksMax || index > kChunksMax - count ||
      !are_chunk_ids(first, count) || raw > (1ULL << 40) || container > 0xffffffffU) {
    return damaged_table("a location");
  }
  return LocationRecord{first, static_cast<std::uint32_t>(count), raw,
                        static_cast<ContainerNumber>(container), static_cast<std::uint32_t>(index)};
}

Result<std::optional<LocationRecord>> find_last_location_before(const meta::Txn& txn,
                                                                StoreId store_id, ChunkId id) {
  if (id.value == 0) return std::optional<LocationRecord>();
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kLocations));
  const ChunkId at_most{id.value - 1};
  VARVE_TRY_ASSIGN(const auto at, cursor.seek_at_or_before(meta::location_key(store_id, at_most)));
  if (!at || at->key.size() != 12 || !at->key.starts_with(meta::store_key(store_id))) {
    return std::optional<LocationRecord>();
  }
  const ChunkId first{base::load_be64(at->key.substr(kSeriesKeyBytes))};
  VARVE_TRY_ASSIGN(const auto record, LocationRecord::decode(first, at->value));
  return std::optional(record);
}

Result<std::optional<LocationRecord>> find_location(const meta::Txn& txn, StoreId store_id,
                                                    ChunkId id) {
  VARVE_TRY_ASSIGN(auto record, find_last_location_before(txn, store_id, id.plus(1)));
  if (record && id.value - record->first.value >= record->count) record.reset();
  return record;
}

Result<void> for_each_location(const meta::Txn& txn, StoreId store_id, ChunkId from,
                               const std::function<Result<bool>(const LocationRecord&)>& visit) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kLocations));
  VARVE_TRY_ASSIGN(auto at, cursor.seek(meta::location_key(store_id, from)));
  const auto prefix = meta::store_key(store_id);
  while (at && at->key.starts_with(prefix)) {
    if (at->key.size() != 12) return damaged_table("a location's key");
    VARVE_TRY_ASSIGN(const auto record,
                     LocationRecord::decode(
                         ChunkId{base::load_be64(at->key.substr(kSeriesKeyBytes))}, at->value));
    VARVE_TRY_ASSIGN(const bool more, visit(record));
    if (!more) break;
    VARVE_TRY_ASSIGN(at, cursor.next());
  }
  return {};
}

std::uint64_t estimate_part(const LocationRecord& run, const base::IdRuns& chunks) {
  const std::uint64_t begin = run.first.value;
  const auto wanted = chunks.count_below(begin + run.count) - chunks.count_below(begin);
  return wanted == run.count ? run.raw_bytes : run.raw_bytes * wanted / run.count;
}

Result<void> for_each_location_of(const meta::Txn& txn, StoreId store_id, const base::IdRuns& ids,
                                  const std::function<Result<bool>(const LocationRecord&)>& visit) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kLocations));
  const auto prefix = meta::store_key(store_id);
  std::optional<LocationRecord> present;
  const auto take = [&](const std::optional<meta::KeyValue>& at) -> Result<void> {
    present.reset();
    if (!at || !at->key.starts_with(prefix)) return {};
    if (at->key.size() != 12) return damaged_table("a location's key");
    VARVE_TRY_ASSIGN(
        present, LocationRecord::decode(ChunkId{base::load_be64(at->key.substr(kSeriesKeyBytes))},
                                        at->value));
    return {};
  };
  std::uint64_t visited_to = 0;  // Ids below belong to visited records.
  for (const auto& run : ids.runs()) {
    const std::uint64_t end = run.first.value + run.count;
    if (end <= visited_to) continue;
    if (!present || present->first.value + present->count <= run.first.value) {
      VARVE_TRY_ASSIGN(auto at, cursor.seek_at_or_before(meta::location_key(store_id, run.first)));
      VARVE_TRY(take(at));
      if (!present || present->first.value + present->count <= run.first.value) {
        VARVE_TRY_ASSIGN(at, cursor.seek(meta::location_key(store_id, run.first)));
        VARVE_TRY(take(at));
      }
    }
    while (present && present->first.value < end) {
      const std::uint64_t record_end = present->first.value + present->count;
      if (record_end > visited_to) {
        visited_to = record_end;
        VARVE_TRY_ASSIGN(const bool more, visit(*present));
        if (!more) return {};
      }
      if (record_end >= end) break;
      VARVE_TRY_ASSIGN(const auto at, cursor.next());
      VARVE_TRY(take(at));
    }
  }
  return {};
}

Result<void> put_location(meta::WriteTxn& txn, StoreId store_id, const LocationRecord& record) {
  return txn.put(meta::catalog::kLocations, meta::location_key(store_id, record.first),
                 record.encode());
}

Result<void> erase_location(meta::WriteTxn& txn, StoreId store_id, ChunkId first) {
  return txn.erase(meta::catalog::kLocations, meta::location_key(store_id, first));
}

Result<void> erase_container(meta::WriteTxn& txn, StoreId store_id, ContainerNumber number) {
  return txn.erase(meta::catalog::kContainers, meta::container_key(store_id, number));
}

Result<std::optional<format::ContainerRecord>> find_container(const meta::Txn& txn,
                                                              StoreId store_id,
                                                              ContainerNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kContainers, meta::container_key(store_id, number)));
  if (!value) return std::optional<format::ContainerRecord>();
  VARVE_TRY_ASSIGN(auto record, format::ContainerRecord::decode(number, *value));
  return std::optional(record);
}

Result<void> for_each_container(
    const meta::Txn& txn, StoreId store_id,
    const std::function<Result<bool>(const format::ContainerRecord&)>& visit) {
  return for_each_container_from(txn, store_id, ContainerNumber{}, visit);
}

Result<void> for_each_container_from(
    const meta::Txn& txn, StoreId store_id, ContainerNumber first,
    const std::function<Result<bool>(const format::ContainerRecord&)>& visit) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kContainers));
  VARVE_TRY_ASSIGN(auto at, cursor.seek(meta::container_key(store_id, first)));
  const auto prefix = meta::store_key(store_id);
  while (at && at->key.starts_with(prefix)) {
    if (at->key.size() != 8) return damaged_table("a container's key");
    VARVE_TRY_ASSIGN(
        const auto record,
        format::ContainerRecord::decode(
            static_cast<ContainerNumber>(base::load_be32(at->key.substr(kSeriesKeyBytes))),
            at->value));
    VARVE_TRY_ASSIGN(const bool more, visit(record));
    if (!more) break;
    VARVE_TRY_ASSIGN(at, cursor.next());
  }
  return {};
}

Result<void> put_container(meta::WriteTxn& txn, StoreId store_id,
                           const format::ContainerRecord& record) {
  return txn.put(meta::catalog::kContainers, meta::container_key(store_id, record.number),
                 record.encode());
}

}  // namespace varve::catalog
