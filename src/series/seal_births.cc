// SPDX-License-Identifier: Apache-2.0
#include "series/seal_births.h"

#include "base/log.h"
#include "catalog/birth_table.h"

namespace varve::series {

Result<SealBirths> SealBirths::begin(const SeriesParts& parts, layout::SeriesLayout& layout,
                                     const catalog::VersionRecord& record,
                                     const base::IdRuns& chunks) {
  SealBirths births;
  births.own_ = parts.store;
  VARVE_TRY(births.find(parts, record, chunks));
  for (auto& [number, birth] : births.births_) {
    const auto stored = chunks.intersect(catalog::ids_of_birth(number));
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
  if (!own) {
    VARVE_TRY_ASSIGN(const bool has_chunks, catalog::has_chunks(txn, own_, record.number));
    // The chunks of a birth begun by an earlier Varve have no mark.
    if (has_chunks) return {};
    VARVE_TRY_ASSIGN(own, catalog::new_birth(record.series, record.number));
  }
  births_.emplace(record.number, *own);
  return {};
}

Result<void> SealBirths::commit(meta::WriteTxn& txn) const {
  for (const auto& [number, birth] : births_) {
    VARVE_TRY(catalog::put_birth(txn, catalog::store_of_birth(own_, number), number, birth));
  }
  return {};
}

}  // namespace varve::series
