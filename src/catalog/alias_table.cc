// SPDX-License-Identifier: Apache-2.0
#include "catalog/alias_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/ids.h"
#include "catalog/location_table.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

Error bad_alias() { return {ErrorCode::kCorrupt, "catalog: a record of aliases is damaged"}; }

Result<AliasRecord> decode_alias(const meta::KeyValue& at) {
  if (at.key.size() != 8) return bad_alias();
  return AliasRecord::decode(ChunkId{base::load_be64(at.key)}, at.value);
}

// Returns the first record with its end after `id`, or nullopt.
Result<std::optional<AliasRecord>> seek_alias(meta::Cursor& cursor, ChunkId id) {
  VARVE_TRY_ASSIGN(auto at, cursor.seek_at_or_before(meta::alias_key(id)));
  if (at) {
    VARVE_TRY_ASSIGN(const auto record, decode_alias(*at));
    if (record.end() > id.value) return std::optional(record);
  }
  VARVE_TRY_ASSIGN(at, cursor.seek(meta::alias_key(id)));
  if (!at) return std::optional<AliasRecord>();
  VARVE_TRY_ASSIGN(const auto record, decode_alias(*at));
  return std::optional(record);
}

}  // namespace

std::string AliasRecord::encode() const {
  std::string out;
  base::ByteWriter w(out);
  w.varint(run.count);
  w.varint(run.target.value);
  w.varint(raw_bytes);
  return out;
}

Result<AliasRecord> AliasRecord::decode(ChunkId first, std::string_view bytes) {
  base::ByteReader r(bytes);
  const auto count = r.varint();
  const auto target = r.varint();
  const auto raw = r.varint();
  if (!r.done() || count > UINT32_MAX || raw < count || raw >> 60 != 0) return bad_alias();
  const AliasRecord record{{first, static_cast<std::uint32_t>(count), ChunkId{target}}, raw};
  if (!format::is_alias_run(record.run)) return bad_alias();
  return record;
}

Result<std::optional<AliasRecord>> find_alias(const meta::Txn& txn, ChunkId id) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kAliases));
  VARVE_TRY_ASSIGN(const auto at, cursor.seek_at_or_before(meta::alias_key(id)));
  if (!at) return std::optional<AliasRecord>();
  VARVE_TRY_ASSIGN(const auto record, decode_alias(*at));
  return record.end() > id.value ? std::optional(record) : std::nullopt;
}

Result<void> for_each_alias(const meta::Txn& txn,
                            const std::function<Result<bool>(const AliasRecord&)>& visit) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kAliases));
  VARVE_TRY_ASSIGN(auto at, cursor.seek(""));
  while (at) {
    VARVE_TRY_ASSIGN(const auto record, decode_alias(*at));
    VARVE_TRY_ASSIGN(const bool more, visit(record));
    if (!more) break;
    VARVE_TRY_ASSIGN(at, cursor.next());
  }
  return {};
}

Result<void> for_each_alias_of(const meta::Txn& txn, const base::IdRuns& ids,
                               const std::function<Result<bool>(const AliasRecord&)>& visit) {
  const auto& runs = ids.runs();
  auto run = std::lower_bound(runs.begin(), runs.end(), kFirstPoolId,
                              [](const base::IdRun& one, ChunkId id) { return one.first < id; });
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kAliases));
  std::uint64_t from = 0;  // Ids below belong to visited records.
  const auto skip_below = [&](std::uint64_t id) {
    run = std::partition_point(run, runs.end(), [id](const base::IdRun& one) {
      return one.first.value + one.count <= id;
    });
  };
  while (run != runs.end()) {
    VARVE_TRY_ASSIGN(const auto record, seek_alias(cursor, {std::max(run->first.value, from)}));
    if (!record) break;
    skip_below(record->run.first.value);
    if (run == runs.end()) break;
    if (run->first.value >= record->end()) continue;
    VARVE_TRY_ASSIGN(const bool more, visit(*record));
    if (!more) break;
    from = record->end();
    skip_below(from);
  }
  return {};
}

Result<void> put_alias(meta::WriteTxn& txn, const AliasRecord& record) {
  return txn.put(meta::catalog::kAliases, meta::alias_key(record.run.first), record.encode());
}

Result<void> erase_alias(meta::WriteTxn& txn, ChunkId first) {
  return txn.erase(meta::catalog::kAliases, meta::alias_key(first));
}

Result<void> erase_aliases(meta::WriteTxn& txn, const base::IdRuns& ids) {
  std::vector<AliasRecord> touched;
  VARVE_TRY(for_each_alias_of(txn, ids, [&](const AliasRecord& record) -> Result<bool> {
    touched.push_back(record);
    return true;
  }));
  for (const auto& record : touched) {
    VARVE_TRY(erase_alias(txn, record.run.first));
    const auto rest = base::IdRuns::from({{record.run.first, record.run.count}}).subtract(ids);
    for (const auto& run : rest.runs()) {
      const auto bytes = record.raw_bytes * run.count / record.run.count;
      VARVE_TRY(put_alias(txn, {{run.first, run.count, record.stored(run.first)}, bytes}));
    }
  }
  return {};
}

Result<base::IdRuns> stored_ids(const meta::Txn& txn, const base::IdRuns& ids) {
  std::vector<base::IdRun> aliased;
  std::vector<base::IdRun> targets;
  VARVE_TRY(for_each_alias_of(txn, ids, [&](const AliasRecord& record) -> Result<bool> {
    const auto wanted = base::IdRuns::from({{record.run.first, record.run.count}}).intersect(ids);
    for (const auto& run : wanted.runs()) {
      aliased.push_back(run);
      targets.push_back({record.stored(run.first), run.count});
    }
    return true;
  }));
  if (aliased.empty()) return ids;
  return ids.subtract(base::IdRuns::from(std::move(aliased)))
      .unite(base::IdRuns::from(std::move(targets)));
}

Result<base::IdRuns> located_ids(const meta::Txn& txn, const base::IdRuns& ids) {
  const auto located = [&](const base::IdRuns& wanted) -> Result<base::IdRuns> {
    std::vector<base::IdRun> runs;
    VARVE_TRY(for_each_location_of(txn, kPoolStore, wanted,
                                   [&](const LocationRecord& at) -> Result<bool> {
                                     runs.push_back({at.first, at.count});
                                     return true;
                                   }));
    return wanted.intersect(base::IdRuns::from(std::move(runs)));
  };
  VARVE_TRY_ASSIGN(const auto own, located(ids));
  std::vector<base::IdRun> aliases;
  VARVE_TRY(
      for_each_alias_of(txn, ids.subtract(own), [&](const AliasRecord& record) -> Result<bool> {
        VARVE_TRY_ASSIGN(const auto there, located(base::IdRuns::from({record.targets()})));
        for (const auto& run : there.runs()) {
          aliases.push_back(
              {record.run.first.plus(run.first.value - record.run.target.value), run.count});
        }
        return true;
      }));
  return own.unite(base::IdRuns::from(std::move(aliases)).intersect(ids));
}

Result<base::IdRuns> aliases_of(const meta::Txn& txn, const base::IdRuns& targets) {
  std::vector<base::IdRun> found;
  if (targets.size() == 0) return base::IdRuns();
  VARVE_TRY(for_each_alias(txn, [&](const AliasRecord& record) -> Result<bool> {
    if (!targets.overlaps(record.targets())) return true;
    const auto its = base::IdRuns::from({record.targets()}).intersect(targets);
    for (const auto& run : its.runs()) {
      found.push_back(
          {record.run.first.plus(run.first.value - record.run.target.value), run.count});
    }
    return true;
  }));
  return base::IdRuns::from(std::move(found));
}

Result<base::IdRuns> all_aliases(const meta::Txn& txn) {
  std::vector<base::IdRun> found;
  VARVE_TRY(for_each_alias(txn, [&](const AliasRecord& record) -> Result<bool> {
    found.push_back({record.run.first, record.run.count});
    return true;
  }));
  return base::IdRuns::from(std::move(found));
}

Result<AliasTotals> alias_totals(const meta::Txn& txn) {
  AliasTotals totals;
  VARVE_TRY(for_each_alias(txn, [&](const AliasRecord& record) -> Result<bool> {
    totals.chunks += record.run.count;
    totals.bytes += record.raw_bytes;
    return true;
  }));
  return totals;
}

}  // namespace varve::catalog
