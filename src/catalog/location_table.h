// SPDX-License-Identifier: Apache-2.0
// The catalog's location runs and container records: the places of all chunks and containers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/id_runs.h"
#include "base/ids.h"
#include "format/container_record.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// A run of consecutive ids whose chunks follow each other in one container.
struct LocationRecord {
  ChunkId first;
  std::uint32_t count = 0;
  std::uint64_t raw_bytes = 0;
  ContainerNumber container{};
  std::uint32_t index = 0;

  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<LocationRecord> decode(ChunkId first, std::string_view bytes);
};

/// Returns the raw bytes of the run's chunks in `chunks`. Estimates a part of the run by the run's
/// average chunk.
[[nodiscard]] std::uint64_t estimate_part(const LocationRecord& run, const base::IdRuns& chunks);

/// Returns the run with `id`, or nullopt.
[[nodiscard]] Result<std::optional<LocationRecord>> find_location(const meta::Txn& txn,
                                                                  StoreId store_id, ChunkId id);
/// Returns the last run that starts before `id`, or nullopt.
[[nodiscard]] Result<std::optional<LocationRecord>> find_last_location_before(const meta::Txn& txn,
                                                                              StoreId store_id,
                                                                              ChunkId id);
/// Calls `visit` for every location run of a series from `from` on, in id order, until `visit`
/// returns false.
[[nodiscard]] Result<void> for_each_location(
    const meta::Txn& txn, StoreId store_id, ChunkId from,
    const std::function<Result<bool>(const LocationRecord&)>& visit);
/// Calls `visit` once for every location run overlapping `ids`.
[[nodiscard]] Result<void> for_each_location_of(
    const meta::Txn& txn, StoreId store_id, const base::IdRuns& ids,
    const std::function<Result<bool>(const LocationRecord&)>& visit);
[[nodiscard]] Result<void> put_location(meta::WriteTxn& txn, StoreId store_id,
                                        const LocationRecord& record);

[[nodiscard]] Result<void> erase_location(meta::WriteTxn& txn, StoreId store_id, ChunkId first);

[[nodiscard]] Result<std::optional<format::ContainerRecord>> find_container(const meta::Txn& txn,
                                                                            StoreId store_id,
                                                                            ContainerNumber number);
[[nodiscard]] Result<void> for_each_container(
    const meta::Txn& txn, StoreId store_id,
    const std::function<Result<bool>(const format::ContainerRecord&)>& visit);
/// Calls `visit` for every container from `first` on, in the same way.
[[nodiscard]] Result<void> for_each_container_from(
    const meta::Txn& txn, StoreId store_id, ContainerNumber first,
    const std::function<Result<bool>(const format::ContainerRecord&)>& visit);
[[nodiscard]] Result<void> put_container(meta::WriteTxn& txn, StoreId store_id,
                                         const format::ContainerRecord& record);
[[nodiscard]] Result<void> erase_container(meta::WriteTxn& txn, StoreId store_id,
                                           ContainerNumber number);

}  // namespace varve::catalog
