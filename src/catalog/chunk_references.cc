// SPDX-License-Identifier: Apache-2.0
#include "catalog/chunk_references.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/coding.h"
#include "catalog/series_catalog.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

using meta::catalog::kReferences;
using Piece = ReferenceCounts::Piece;

// A record covers a group of ids, so that a change rewrites few bytes.
constexpr std::uint64_t kGroupIds = 4096;

std::uint64_t group_of(std::uint64_t id) { return id / kGroupIds * kGroupIds; }
std::uint64_t birth_of(std::uint64_t id) { return id >> 32; }

Error damaged() { return {ErrorCode::kCorrupt, "catalog: a record of references is damaged"}; }

std::string key_of(SeriesId series, std::uint64_t group) {
  return meta::series_key(series) + base::be64(group);
}

// Returns the record of a group, made from the group's pieces with more than one reference.
std::string encode(std::uint64_t group, const std::vector<Piece>& pieces) {
  std::string out;
  base::ByteWriter w(out);
  std::uint64_t at = group;
  for (const auto& piece : pieces) {
    w.varint(piece.first - at);
    w.varint(piece.end - piece.first);
    w.varint(static_cast<std::uint64_t>(piece.references) - 2);
    at = piece.end;
  }
  return out;
}

Result<void> decode(std::uint64_t group, std::string_view bytes, std::vector<Piece>& out) {
  constexpr std::uint64_t kReferencesMax = std::uint64_t{1} << 62;
  base::ByteReader r(bytes);
  std::uint64_t at = group;
  const std::uint64_t end = group + kGroupIds;
  while (r.ok() && r.left() != 0) {
    const auto gap = r.varint();
    const auto count = r.varint();
    const auto more = r.varint();
    if (!r.ok() || gap > end - at || count == 0 || count > end - at - gap ||
        more > kReferencesMax) {
      return damaged();
    }
    out.push_back({at + gap, at + gap + count, static_cast<std::int64_t>(more) + 2});
    at += gap + count;
  }
  if (!r.ok()) return damaged();
  return {};
}

// Calls `visit(group, part)` for the part of the piece in each group.
template <typename Visit>
void for_each_group(const Piece& piece, const Visit& visit) {
  for (auto at = piece.first; at < piece.end;) {
    const auto end = std::min(piece.end, group_of(at) + kGroupIds);
    visit(group_of(at), Piece{at, end, piece.references});
    at = end;
  }
}

base::IdRun run_of(const Piece& piece) {
  return {ChunkId{piece.first}, static_cast<std::uint32_t>(piece.end - piece.first)};
}

// The records of the groups that contain the added pieces.
class GroupRecords {
 public:
  void add(const Piece& piece) {
    if (piece.references < 2) return;
    for_each_group(piece, [&](std::uint64_t group, const Piece& part) {
      if (group != group_ && !pieces_.empty()) close();
      group_ = group;
      pieces_.push_back(part);
    });
  }
  // Returns the groups with their records, ascending.
  std::vector<std::pair<std::uint64_t, std::string>> take() {
    if (!pieces_.empty()) close();
    return std::move(records_);
  }

 private:
  void close() {
    records_.emplace_back(group_, encode(group_, pieces_));
    pieces_.clear();
  }
  std::uint64_t group_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::pair<std::uint64_t, std::string>> records_;
};

}  // namespace

void ReferenceCounts::add(const base::IdRun& run, std::int64_t references) {
  const auto end = run.first.value + run.count;
  if (!edges_.empty() && edges_.back().at == run.first.value &&
      edges_.back().change == -references) {
    edges_.back().at = end;
    return;
  }
  edges_.push_back({run.first.value, references});
  edges_.push_back({end, -references});
  if (edges_.size() >= compact_at_) {
    compact();
    compact_at_ = std::max(compact_at_, edges_.size() * 2);
  }
}

void ReferenceCounts::compact() {
  std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < edges_.size();) {
    Edge sum{edges_[i].at, 0};
    for (; i < edges_.size() && edges_[i].at == sum.at; ++i) sum.change += edges_[i].change;
    if (sum.change != 0) edges_[kept++] = sum;
  }
  edges_.resize(kept);
}

std::vector<Piece> ReferenceCounts::pieces() {
  compact();
  std::vector<Piece> out;
  std::int64_t references = 0;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    references += edges_[i].change;
    if (references == 0) continue;
    // The last edge ends the last run, so edge i + 1 exists.
    for (auto at = edges_[i].at; at != edges_[i + 1].at;) {
      const auto birth_end = (birth_of(at) + 1) << 32;
      const auto end = birth_end == 0 ? edges_[i + 1].at : std::min(edges_[i + 1].at, birth_end);
      out.push_back({at, end, references});
      at = end;
    }
  }
  return out;
}

VersionReferences VersionReferences::of_all(ReferenceCounts counts) {
  VersionReferences all;
  all.all_ = true;
  std::vector<base::IdRun> runs;
  GroupRecords groups;
  for (const auto& piece : counts.pieces()) {
    runs.push_back(run_of(piece));
    groups.add(piece);
  }
  all.chunks_ = base::IdRuns::from(std::move(runs));
  for (auto& [group, record] : groups.take()) {
    all.records_.emplace_back(base::be64(group), std::move(record));
  }
  return all;
}

Result<VersionReferences> VersionReferences::of_changes(const meta::Txn& txn, SeriesId series,
                                                        VersionNumber base,
                                                        ReferenceCounts changes) {
  if (!has_references(txn, series, base)) return damaged();
  VARVE_TRY_ASSIGN(const auto chunks, version_chunks(txn, series, base));
  // In the groups with changes, the sum of the base's references and of the changes.
  std::vector<base::IdRun> touched;
  std::vector<std::uint64_t> groups;
  for (const auto& piece : changes.pieces()) {
    for_each_group(piece, [&](std::uint64_t group, const Piece&) {
      if (!groups.empty() && groups.back() == group) return;
      groups.push_back(group);
      touched.push_back({ChunkId{group}, static_cast<std::uint32_t>(kGroupIds)});
    });
  }
  const auto affected = base::IdRuns::from(std::move(touched));
  const auto kept = chunks.subtract(affected);
  const auto counted = chunks.subtract(kept);
  for (const auto& run : counted.runs()) changes.add(run, 1);
  std::vector<std::pair<std::uint64_t, std::string>> before;
  for (const auto group : groups) {
    VARVE_TRY_ASSIGN(const auto value, txn.get(kReferences, key_of(series, group)));
    before.emplace_back(group, value ? std::string(*value) : std::string());
    std::vector<Piece> pieces;
    VARVE_TRY(decode(group, before.back().second, pieces));
    for (const auto& piece : pieces) changes.add(run_of(piece), piece.references - 1);
  }
  std::vector<base::IdRun> runs;
  GroupRecords after;
  for (const auto& piece : changes.pieces()) {
    if (piece.references < 0) return damaged();
    runs.push_back(run_of(piece));
    after.add(piece);
  }
  VersionReferences made;
  made.chunks_ = kept.unite(base::IdRuns::from(std::move(runs)));
  auto records = after.take();
  auto next = records.begin();
  for (auto& [group, old] : before) {
    std::string record;
    if (next != records.end() && next->first == group) record = std::move((next++)->second);
    if (record != old) made.records_.emplace_back(base::be64(group), std::move(record));
  }
  return made;
}

Result<void> VersionReferences::put(meta::WriteTxn& txn, SeriesId series,
                                    VersionNumber number) const {
  if (all_) VARVE_TRY(erase_references(txn, series));
  const auto prefix = meta::series_key(series);
  for (const auto& [group, record] : records_) {
    VARVE_TRY(record.empty() ? txn.erase(kReferences, prefix + group)
                             : txn.put(kReferences, prefix + group, record));
  }
  return txn.put(kReferences, prefix, base::be32(static_cast<std::uint32_t>(number)));
}

bool has_references(const meta::Txn& txn, SeriesId series, VersionNumber number) {
  if (!txn.has(kReferences)) return false;
  const auto value = txn.get(kReferences, meta::series_key(series));
  return value && *value && **value == base::be32(static_cast<std::uint32_t>(number));
}

Result<void> erase_references(meta::WriteTxn& txn, SeriesId series) {
  return txn.erase_prefix(kReferences, meta::series_key(series));
}

Result<std::vector<Piece>> stored_references(const meta::Txn& txn, SeriesId series) {
  std::vector<Piece> all;
  if (!txn.has(kReferences)) return all;
  VARVE_TRY(
      meta::for_each_prefix(txn, kReferences, meta::series_key(series),
                            [&](std::string_view key, std::string_view value) -> Result<bool> {
                              if (key.size() == 4) return true;  // The version's number.
                              if (key.size() != 12) return damaged();
                              const auto group = base::load_be64(key.substr(4));
                              if (group % kGroupIds != 0) return damaged();
                              auto decoded = decode(group, value, all);
                              if (!decoded) return std::move(decoded).error();
                              return true;
                            }));
  return all;
}

}  // namespace varve::catalog
