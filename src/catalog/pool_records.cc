// SPDX-License-Identifier: Apache-2.0
#include "catalog/pool_records.h"

#include <algorithm>
#include <map>

#include "base/coding.h"
#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "format/rewrite_counts.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

Error damaged(const char* what) {
  return {ErrorCode::kCorrupt, std::string("catalog: damaged record of ") + what};
}

// Returns the runs of the set from kFirstPoolId on if `above`, else the runs below.
base::IdRuns cut_at_pool(const base::IdRuns& chunks, bool above) {
  const auto& runs = chunks.runs();
  // A run stays inside one birth, so no run crosses kFirstPoolId.
  const auto at =
      std::lower_bound(runs.begin(), runs.end(), kFirstPoolId,
                       [](const base::IdRun& run, ChunkId first) { return run.first < first; });
  if (above ? at == runs.begin() : at == runs.end()) return chunks;
  return base::IdRuns::from(above ? std::vector<base::IdRun>(at, runs.end())
                                  : std::vector<base::IdRun>(runs.begin(), at));
}

Result<void> put_next_birth(meta::WriteTxn& txn, std::uint64_t birth) {
  std::string out;
  base::ByteWriter w(out);
  w.varint(birth);
  return txn.put(meta::catalog::kSettings, kPoolBirthSetting, out);
}

// Returns the lowest birth above the births of all chunks and aliases on record: a restored older
// setting must not repeat their ids. Ignores damaged records.
VersionNumber birth_above_chunks(const meta::Txn& txn) {
  const auto birth_before_end = [&](meta::TableIndex table, std::string_view prefix) {
    auto cursor = meta::Cursor::open(txn, table);
    if (!cursor) return std::uint32_t{0};
    const auto end = std::string(prefix).append(base::be64(~std::uint64_t{0}));
    const auto last = cursor->seek_at_or_before(end);
    const bool present =
        last && *last && (*last)->key.starts_with(prefix) && (*last)->key.size() == end.size();
    if (!present) return std::uint32_t{0};
    const ChunkId first{base::load_be64((*last)->key.substr(prefix.size()))};
    return static_cast<std::uint32_t>(first.birth());
  };
  const auto last = std::max(
      birth_before_end(meta::catalog::kLocations, meta::store_key(kPoolStore)),
      txn.has(meta::catalog::kAliases) ? birth_before_end(meta::catalog::kAliases, "") : 0);
  return static_cast<VersionNumber>(std::max(kPoolBit, std::min(last, 0xfffffffeU) + 1));
}

}  // namespace

std::string encode_pool_use(const std::vector<PoolUse>& uses) {
  std::string out;
  base::ByteWriter w(out);
  w.varint(uses.size());
  std::uint64_t next = kPoolBit;
  for (const auto& use : uses) {
    const auto number = static_cast<std::uint32_t>(use.container);
    w.varint(number - next);
    w.varint(use.bytes);
    next = std::uint64_t{number} + 1;
  }
  return out;
}

Result<std::vector<PoolUse>> decode_pool_use(std::string_view bytes) {
  base::ByteReader r(bytes);
  const std::uint64_t count = r.varint();
  if (count > bytes.size()) return damaged("a version's containers in the pool");
  std::vector<PoolUse> uses;
  uses.reserve(count);
  std::uint64_t next = kPoolBit;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = r.varint();
    const std::uint64_t used = r.varint();
    if (gap > 0xffffffffU || next + gap > 0xffffffffU) {
      return damaged("a version's containers in the pool");
    }
    uses.push_back({static_cast<ContainerNumber>(next + gap), used});
    next += gap + 1;
  }
  if (!r.done()) return damaged("a version's containers in the pool");
  return uses;
}

Result<std::uint32_t> decode_pool_users(std::string_view bytes) {
  base::ByteReader r(bytes);
  const std::uint64_t users = r.varint();
  if (!r.done() || users == 0 || users > 0xffffffffU) return damaged("a container's users");
  return static_cast<std::uint32_t>(users);
}

Result<std::vector<PoolUse>> find_pool_use(const meta::Txn& txn, SeriesId series,
                                           VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kPoolUse, meta::version_key(series, number)));
  if (!value) return std::vector<PoolUse>();
  return decode_pool_use(*value);
}

Result<void> for_each_pool_use(
    const meta::Txn& txn,
    const std::function<Result<bool>(SeriesId, VersionNumber, const std::vector<PoolUse>&)>&
        visit) {
  return meta::for_each_prefix(
      txn, meta::catalog::kPoolUse, "",
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() != 8) return damaged("a version's containers in the pool");
        VARVE_TRY_ASSIGN(const auto uses, decode_pool_use(value));
        return visit(static_cast<SeriesId>(base::load_be32(key)),
                     static_cast<VersionNumber>(base::load_be32(key.substr(4))), uses);
      });
}

Result<void> note_pool_chunks(meta::WriteTxn& txn, SeriesId series, VersionNumber number) {
  return txn.put(meta::catalog::kPoolUse, meta::version_key(series, number), encode_pool_use({}));
}

Result<bool> has_pool_record(const meta::Txn& txn, SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kPoolUse, meta::version_key(series, number)));
  return value.has_value();
}

Result<void> put_pool_use(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                          const std::vector<PoolUse>& uses) {
  const auto key = meta::version_key(series, number);
  if (uses.empty()) return txn.erase(meta::catalog::kPoolUse, key);
  return txn.put(meta::catalog::kPoolUse, key, encode_pool_use(uses));
}

Result<std::uint32_t> find_pool_users(const meta::Txn& txn, ContainerNumber container) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kPoolUsers, meta::pool_users_key(container)));
  if (!value) return std::uint32_t{0};
  return decode_pool_users(*value);
}

Result<void> for_each_pool_users(
    const meta::Txn& txn,
    const std::function<Result<bool>(ContainerNumber, std::uint32_t)>& visit) {
  return meta::for_each_prefix(txn, meta::catalog::kPoolUsers, "",
                               [&](std::string_view key, std::string_view value) -> Result<bool> {
                                 if (key.size() != 4) return damaged("a container's users");
                                 VARVE_TRY_ASSIGN(const auto users, decode_pool_users(value));
                                 return visit(static_cast<ContainerNumber>(base::load_be32(key)),
                                              users);
                               });
}

Result<void> put_pool_users(meta::WriteTxn& txn, ContainerNumber container, std::uint32_t users) {
  const auto key = meta::pool_users_key(container);
  if (users == 0) return txn.erase(meta::catalog::kPoolUsers, key);
  std::string out;
  base::ByteWriter w(out);
  w.varint(users);
  return txn.put(meta::catalog::kPoolUsers, key, out);
}

Result<std::optional<RewriteCounts>> find_rewrite_counts(const meta::Txn& txn, SeriesId series,
                                                         VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kRewriteCounts, meta::version_key(series, number)));
  if (!value) return std::optional<RewriteCounts>();
  VARVE_TRY_ASSIGN(const auto counts, format::decode_rewrite_counts(*value));
  return std::optional(counts);
}

Result<void> for_each_rewrite_counts(
    const meta::Txn& txn,
    const std::function<Result<bool>(SeriesId, VersionNumber, const RewriteCounts&)>& visit) {
  return meta::for_each_prefix(
      txn, meta::catalog::kRewriteCounts, "",
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() != 8) return damaged("the counts of rewriting");
        VARVE_TRY_ASSIGN(const auto counts, format::decode_rewrite_counts(value));
        return visit(static_cast<SeriesId>(base::load_be32(key)),
                     static_cast<VersionNumber>(base::load_be32(key.substr(4))), counts);
      });
}

Result<void> put_rewrite_counts(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                                const RewriteCounts& counts) {
  return txn.put(meta::catalog::kRewriteCounts, meta::version_key(series, number),
                 format::encode_rewrite_counts(counts));
}

Result<std::vector<PoolUse>> pool_use_of(const meta::Txn& txn, const base::IdRuns& chunks,
                                         base::IdRuns* lost) {
  const auto named = pool_part(chunks);
  VARVE_TRY_ASSIGN(const auto shared, stored_ids(txn, named));
  std::map<ContainerNumber, std::uint64_t> bytes_in;
  std::vector<base::IdRun> stored;
  if (shared.size() != 0) {
    VARVE_TRY(for_each_location_of(txn, kPoolStore, shared,
                                   [&](const LocationRecord& at) -> Result<bool> {
                                     bytes_in[at.container] += estimate_part(at, shared);
                                     if (lost != nullptr) stored.push_back({at.first, at.count});
                                     return true;
                                   }));
  }
  if (lost != nullptr) *lost = shared.subtract(base::IdRuns::from(std::move(stored)));
  std::vector<PoolUse> uses;
  uses.reserve(bytes_in.size());
  for (const auto& [container, bytes] : bytes_in) uses.push_back({container, bytes});
  return uses;
}

base::IdRuns pool_part(const base::IdRuns& chunks) { return cut_at_pool(chunks, true); }
base::IdRuns own_part(const base::IdRuns& chunks) { return cut_at_pool(chunks, false); }

Result<bool> pool_merging_is_due(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kPoolMergingSetting));
  return value.has_value();
}

Result<void> put_pool_merging(meta::WriteTxn& txn, bool is_due) {
  if (!is_due) return txn.erase(meta::catalog::kSettings, kPoolMergingSetting);
  return txn.put(meta::catalog::kSettings, kPoolMergingSetting, "");
}

Result<PostPassMark> find_post_pass(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kPostPassSetting));
  PostPassMark mark{static_cast<VersionNumber>(kPoolBit), static_cast<ContainerNumber>(kPoolBit),
                    0};
  if (!value) return mark;
  base::ByteReader r(*value);
  const auto births_end = r.varint();
  const auto next = r.varint();
  mark.raw_bytes = r.varint();
  if (!r.done() || births_end > UINT32_MAX || next > UINT32_MAX) {
    return damaged("the last post-pass");
  }
  mark.births_end = static_cast<VersionNumber>(births_end);
  mark.next = static_cast<ContainerNumber>(next);
  return mark;
}

Result<void> put_post_pass(meta::WriteTxn& txn, const PostPassMark& mark) {
  std::string out;
  base::ByteWriter w(out);
  w.varint(static_cast<std::uint32_t>(mark.births_end));
  w.varint(static_cast<std::uint32_t>(mark.next));
  w.varint(mark.raw_bytes);
  return txn.put(meta::catalog::kSettings, kPostPassSetting, out);
}

Result<std::uint64_t> bytes_to_compare(const meta::Txn& txn, const PostPassMark& mark) {
  std::uint64_t bytes = 0;
  VARVE_TRY(for_each_container_from(txn, kPoolStore, mark.next,
                                    [&](const format::ContainerRecord& record) -> Result<bool> {
                                      const bool is_new = record.birth >= mark.births_end;
                                      bytes += is_new ? record.raw_bytes : 0;
                                      return true;
                                    }));
  return bytes;
}

Result<VersionNumber> decode_pool_birth(std::string_view bytes) {
  base::ByteReader r(bytes);
  const std::uint64_t birth = r.varint();
  if (!r.done() || birth < kPoolBit || birth > 0xffffffffU) return damaged("the pool's births");
  return static_cast<VersionNumber>(birth);
}

Result<VersionNumber> next_pool_birth(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kPoolBirthSetting));
  return value ? decode_pool_birth(*value) : static_cast<VersionNumber>(kPoolBit);
}

Result<PoolIndexChoice> find_pool_index(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kPoolIndexSetting));
  if (!value) return PoolIndexChoice();
  base::ByteReader r(*value);
  const auto kind = r.varint();
  const auto hook_bits = r.varint();
  if (!r.done()) return Error(ErrorCode::kCorrupt, "catalog: the setting pool_index is damaged");
  constexpr std::uint64_t kNone = 0xff;
  const PoolIndexChoice choice{static_cast<PoolIndexKind>(std::min(kind, kNone)),
                               static_cast<std::uint32_t>(std::min(hook_bits, kNone))};
  VARVE_TRY(check_pool_index(choice));
  return choice;
}

Result<void> put_pool_index(meta::WriteTxn& txn, const PoolIndexChoice& choice) {
  if (choice == PoolIndexChoice()) return txn.erase(meta::catalog::kSettings, kPoolIndexSetting);
  std::string out;
  base::ByteWriter w(out);
  w.varint(static_cast<std::uint8_t>(choice.kind));
  w.varint(choice.hook_bits);
  return txn.put(meta::catalog::kSettings, kPoolIndexSetting, out);
}

Result<VersionNumber> take_pool_birth(meta::WriteTxn& txn) {
  VARVE_TRY_ASSIGN(const auto stored, next_pool_birth(txn));
  const auto birth = std::max(stored, birth_above_chunks(txn));
  const auto number = static_cast<std::uint32_t>(birth);
  if (number == 0xffffffffU) return Error(ErrorCode::kTooLarge, "the pool has no births left");
  VARVE_TRY(put_next_birth(txn, std::uint64_t{number} + 1));
  return birth;
}

Result<void> raise_pool_birth(meta::WriteTxn& txn, VersionNumber birth) {
  VARVE_TRY_ASSIGN(const auto next, next_pool_birth(txn));
  const auto wanted = std::uint64_t{static_cast<std::uint32_t>(birth)} + 1;
  if (wanted <= static_cast<std::uint32_t>(next)) return {};
  return put_next_birth(txn, std::min<std::uint64_t>(wanted, 0xffffffffU));
}

}  // namespace varve::catalog
