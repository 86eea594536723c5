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
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
    VARVE_TRY_ASSIGN(births.births_, catalog::births_of(txn, parts.store, chunks));
  }
  std::erase_if(births.births_, [&](const auto& entry) {
    return entry.second.series != record.series || entry.second.version != record.number;
  });
  for (auto& [number, birth] : births.births_) {
    const auto all = base::IdRuns::from({{ChunkId::make(number, 0), UINT32_MAX}});
    const auto digest = layout.digest(chunks.intersect(all));
    if (digest) {
      birth.digest = *digest;
    } else {
      base::log(base::LogLevel::kWarning, "sealing " + record.name + ": no digest of its chunks: " +
                                              digest.error().message());
    }
  }
  return births;
}

Result<void> SealBirths::commit(meta::WriteTxn& txn) const {
  for (const auto& [number, birth] : births_) {
    const bool in_pool = is_pool(ChunkId::make(number, 0));
    VARVE_TRY(catalog::put_birth(txn, in_pool ? kPoolStore : own_, number, birth));
  }
  return {};
}

}  // namespace varve::series
