// SPDX-License-Identifier: Apache-2.0
// The catalog's aliases: chunks of the pool whose content is stored under the id of another chunk.
// No chunk is both an alias and stored, and no alias leads to an alias.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/id_runs.h"
#include "format/alias_file.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// A run of aliases, in the table `aliases`.
struct AliasRecord {
  format::AliasRun run;
  std::uint64_t raw_bytes = 0;  ///< Raw size of the run's chunks.

  [[nodiscard]] std::uint64_t end() const { return run.first.value + run.count; }
  [[nodiscard]] base::IdRun targets() const { return {run.target, run.count}; }
  /// Returns the stored id of the content of `id`. `id` must be in the run.
  [[nodiscard]] ChunkId stored(ChunkId id) const {
    return run.target.plus(id.value - run.first.value);
  }
  [[nodiscard]] std::string encode() const;
  /// Errors: kCorrupt.
  [[nodiscard]] static Result<AliasRecord> decode(ChunkId first, std::string_view bytes);
};

/// Returns the run of aliases with `id`; nullopt if the chunk is no alias.
[[nodiscard]] Result<std::optional<AliasRecord>> find_alias(const meta::Txn& txn, ChunkId id);
/// Calls `visit` for each run of aliases, ascending, until `visit` returns false.
[[nodiscard]] Result<void> for_each_alias(
    const meta::Txn& txn, const std::function<Result<bool>(const AliasRecord&)>& visit);
/// Calls `visit` for each run of aliases that has an id of `ids`, ascending, until `visit` returns
/// false.
[[nodiscard]] Result<void> for_each_alias_of(
    const meta::Txn& txn, const base::IdRuns& ids,
    const std::function<Result<bool>(const AliasRecord&)>& visit);
[[nodiscard]] Result<void> put_alias(meta::WriteTxn& txn, const AliasRecord& record);
[[nodiscard]] Result<void> erase_alias(meta::WriteTxn& txn, ChunkId first);
/// Erases the aliases of a set, also parts of runs.
[[nodiscard]] Result<void> erase_aliases(meta::WriteTxn& txn, const base::IdRuns& ids);

/// Returns the stored ids of the contents of `ids`: aliases are replaced by their targets.
[[nodiscard]] Result<base::IdRuns> stored_ids(const meta::Txn& txn, const base::IdRuns& ids);
/// Returns the subset of `ids` with content located in the pool, directly or through aliases.
[[nodiscard]] Result<base::IdRuns> located_ids(const meta::Txn& txn, const base::IdRuns& ids);
/// Returns the aliases whose targets are in `targets`. Reads the whole table, unless `targets` is
/// empty.
[[nodiscard]] Result<base::IdRuns> aliases_of(const meta::Txn& txn, const base::IdRuns& targets);
/// Returns all aliases.
[[nodiscard]] Result<base::IdRuns> all_aliases(const meta::Txn& txn);

/// The chunks not stored thanks to aliases.
struct AliasTotals {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;  ///< Raw size of the chunks.
};
[[nodiscard]] Result<AliasTotals> alias_totals(const meta::Txn& txn);

}  // namespace varve::catalog
