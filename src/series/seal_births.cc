// SPDX-License-Identifier: Apache-2.0
#include "series/seal_births.h"

#include "base/ids.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "catalog/birth_table.h"
#include "catalog/location_table.h"

namespace varve::series {

Result<SealBirths> SealBirths::begin(const SeriesParts& parts, layout::SeriesLayout& layout,
                                     const catalog::VersionRecord& record,
                                     const base::IdRuns& chunks) {
  SealBirths births;
  births.own_ = parts.store;
  VARVE_TRY(births.find(parts, record, chunks));
  for (auto& [number, birth] : births.births_) {
    const auto all = base::IdRuns::from({{ChunkId::make(number, 0), UINT32_MAX}});
    const auto stored = chunks.intersect(all);
    if (stored.size() == 0) continue;
    const auto digest = layout.digest(stored);
    if (digest) {
      birth.digest = *digest;
    } else {
      base::log(base::LogLevel::kWarning, "sealing " + record.name + ": no digest of its chunks: " +
                                              digest.error().message());
    }
  }
  return births;
}

Result<void> SealBirths::find(const SeriesParts& parts, const catalog::VersionRecord& record,
                              const base::IdRuns& chunks) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  VARVE_TRY_ASSIGN(births_, catalog::births_of(txn, own_, chunks));
  std::erase_if(births_, [&](const auto& entry) {
    return entry.second.series != record.series || entry.second.version != record.number;
  });
  VARVE_TRY_ASSIGN(auto own, catalog::find_birth(txn, own_, record.number));
  bool has_chunks = false;
  VARVE_TRY(catalog::for_each_location(txn, own_, ChunkId::make(record.number, 0),
                                       [&](const catalog::LocationRecord& at) -> Result<bool> {
                                         has_chunks = at.first.birth() == record.number;
                                         return false;
                                       }));
  // The chunks of a birth that an earlier Varve began have no mark.
  if (!own && has_chunks) return {};
  if (!own) {
    own.emplace();
    VARVE_TRY_ASSIGN(own->mark, base::random_bytes<format::kBirthMarkBytes>());
    own->series = record.series;
    own->version = record.number;
  }
  births_.emplace(record.number, *own);
  return {};
}

Result<void> SealBirths::commit(meta::WriteTxn& txn) const {
  for (const auto& [number, birth] : births_) {
    const bool in_pool = is_pool(ChunkId::make(number, 0));
    VARVE_TRY(catalog::put_birth(txn, in_pool ? kPoolStore : own_, number, birth));
  }
  return {};
}

}  // namespace varve::series
