// SPDX-License-Identifier: Apache-2.0
// The records of the pool: the containers used by each sealed version, and the number of versions
// that use each container. A container without a user can be freed, whatever versions were deleted.
// Also the decisions about the pool while each version was written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/pool_index.h"
#include "varve/result.h"
#include "varve/rewrite.h"
#include "varve/types.h"

namespace varve::catalog {

/// A container of the pool, as used by a version.
struct PoolUse {
  ContainerNumber container{};
  std::uint64_t bytes = 0;  ///< Raw bytes of the version's chunks, each chunk counted once.
  bool operator==(const PoolUse&) const = default;
};

/// Encode and decode the value of `pool_use` in the catalog (docs/FORMAT.md §7). `uses` ascend by
/// container. Errors: kCorrupt.
[[nodiscard]] std::string encode_pool_use(const std::vector<PoolUse>& uses);
[[nodiscard]] Result<std::vector<PoolUse>> decode_pool_use(std::string_view bytes);
/// Decodes the value of `pool_users`. Errors: kCorrupt.
[[nodiscard]] Result<std::uint32_t> decode_pool_users(std::string_view bytes);

/// Returns the containers used by a sealed version, ascending; empty without a record.
[[nodiscard]] Result<std::vector<PoolUse>> find_pool_use(const meta::Txn& txn, SeriesId series,
                                                         VersionNumber number);
/// Calls `visit` for each version with a record, until `visit` returns false.
[[nodiscard]] Result<void> for_each_pool_use(
    const meta::Txn& txn,
    const std::function<Result<bool>(SeriesId, VersionNumber, const std::vector<PoolUse>&)>& visit);
/// Notes that an open version stores chunks in the pool: writes a record without containers.
[[nodiscard]] Result<void> note_pool_chunks(meta::WriteTxn& txn, SeriesId series,
                                            VersionNumber number);
/// Returns whether a version has a record, with or without containers.
[[nodiscard]] Result<bool> has_pool_record(const meta::Txn& txn, SeriesId series,
                                           VersionNumber number);
/// Stores the containers used by a version. An empty list removes the record.
[[nodiscard]] Result<void> put_pool_use(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                                        const std::vector<PoolUse>& uses);

/// Returns the number of sealed versions that use a container.
[[nodiscard]] Result<std::uint32_t> find_pool_users(const meta::Txn& txn,
                                                    ContainerNumber container);
/// Calls `visit` for each container with users, ascending, until `visit` returns false.
[[nodiscard]] Result<void> for_each_pool_users(
    const meta::Txn& txn,
    const std::function<Result<bool>(ContainerNumber, std::uint32_t users)>& visit);
/// Stores the number of users of a container. Without users, removes the record.
[[nodiscard]] Result<void> put_pool_users(meta::WriteTxn& txn, ContainerNumber container,
                                          std::uint32_t users);

/// Returns the counts of a sealed version; nullopt if missing.
[[nodiscard]] Result<std::optional<RewriteCounts>> find_rewrite_counts(const meta::Txn& txn,
                                                                       SeriesId series,
                                                                       VersionNumber number);
/// Calls `visit` for each version with counts, until `visit` returns false.
[[nodiscard]] Result<void> for_each_rewrite_counts(
    const meta::Txn& txn,
    const std::function<Result<bool>(SeriesId, VersionNumber, const RewriteCounts&)>& visit);
/// Records the counts. catalog::erase_version() erases the counts.
[[nodiscard]] Result<void> put_rewrite_counts(meta::WriteTxn& txn, SeriesId series,
                                              VersionNumber number, const RewriteCounts& counts);

/// Returns the containers of the pool with `chunks`; for an alias, the container of the alias's
/// target. Estimates a part of a location run by the run's average chunk. Adds chunks of the pool
/// that are not stored there to `lost`.
[[nodiscard]] Result<std::vector<PoolUse>> pool_use_of(const meta::Txn& txn,
                                                       const base::IdRuns& chunks,
                                                       base::IdRuns* lost = nullptr);

/// Returns the chunks of the set in the pool.
[[nodiscard]] base::IdRuns pool_part(const base::IdRuns& chunks);
/// Returns the chunks of the set in the series' own store.
[[nodiscard]] base::IdRuns own_part(const base::IdRuns& chunks);

/// Returns whether a version was deleted since the last search for little used containers.
[[nodiscard]] Result<bool> pool_merging_is_due(const meta::Txn& txn);
[[nodiscard]] Result<void> put_pool_merging(meta::WriteTxn& txn, bool is_due);
/// Key in `settings` of the note that merging is due. The value is empty.
inline constexpr std::string_view kPoolMergingSetting = "pool_merging";

/// The part of the pool compared by the last post-pass.
struct PostPassMark {
  VersionNumber births_end{};   ///< The post-pass has seen all chunks of earlier births.
  ContainerNumber next{};       ///< First number of containers newer than the post-pass.
  std::uint64_t raw_bytes = 0;  ///< Raw size of the pool's containers at the end of the post-pass.
  bool operator==(const PostPassMark&) const = default;
};
/// Key in `settings` of the mark.
inline constexpr std::string_view kPostPassSetting = "post_pass";
/// Returns the mark; without a record, the mark of an empty pool. Errors: kCorrupt.
[[nodiscard]] Result<PostPassMark> find_post_pass(const meta::Txn& txn);
[[nodiscard]] Result<void> put_post_pass(meta::WriteTxn& txn, const PostPassMark& mark);
/// Returns the raw size of the containers whose chunks no post-pass has compared.
[[nodiscard]] Result<std::uint64_t> bytes_to_compare(const meta::Txn& txn,
                                                     const PostPassMark& mark);

/// Key in `settings` of the index of the pool. A missing record stands for the exact index.
inline constexpr std::string_view kPoolIndexSetting = "pool_index";
/// Returns the index chosen for the repository's pool.
/// Errors: kCorrupt; kUnsupported for an index unknown to this build.
[[nodiscard]] Result<PoolIndexChoice> find_pool_index(const meta::Txn& txn);
[[nodiscard]] Result<void> put_pool_index(meta::WriteTxn& txn, const PoolIndexChoice& choice);

/// Takes the birth of the next stream of new chunks in the pool. No birth is given twice, even if
/// the stream stores nothing. Errors: kTooLarge after 2^31 births.
[[nodiscard]] Result<VersionNumber> take_pool_birth(meta::WriteTxn& txn);
/// Key in `settings` of the next birth.
inline constexpr const char* kPoolBirthSetting = "pool_birth";
/// Decodes the value of kPoolBirthSetting. Errors: kCorrupt.
[[nodiscard]] Result<VersionNumber> decode_pool_birth(std::string_view bytes);
/// Returns the next birth; without a record, the first birth.
[[nodiscard]] Result<VersionNumber> next_pool_birth(const meta::Txn& txn);
/// Raises the next birth above `birth`.
[[nodiscard]] Result<void> raise_pool_birth(meta::WriteTxn& txn, VersionNumber birth);

}  // namespace varve::catalog
