// SPDX-License-Identifier: Apache-2.0
#include "maintain/deletion_notes.h"

#include <fmt/core.h>

#include <cstdint>

#include "base/log.h"
#include "base/system_error.h"
#include "catalog/series_catalog.h"

namespace varve::maintain {

Result<std::optional<catalog::DeletionRecord>> readable_deletion(const meta::Txn& txn,
                                                                 SeriesId series) {
  auto note = catalog::find_deletion(txn, series);
  if (note || !base::is_damage(note.error())) return note;
  base::log(base::LogLevel::kWarning,
            fmt::format("the note of the last deletion in series {} counts as missing ({}); `varve "
                        "repair` removes the damaged note",
                        static_cast<std::uint32_t>(series), note.error().message()));
  return std::optional<catalog::DeletionRecord>();
}

Result<std::vector<DamagedNote>> find_damaged_notes(const meta::Txn& txn) {
  std::vector<DamagedNote> damaged;
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    const auto note = catalog::find_deletion(txn, series.id);
    if (note) continue;
    if (!base::is_damage(note.error())) return note.error();
    damaged.push_back({series.id, series.name});
  }
  return damaged;
}

Result<void> erase_damaged_notes(const meta::Env& catalog) {
  std::vector<DamagedNote> damaged;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(damaged, find_damaged_notes(txn));
  }
  if (damaged.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  for (const auto& note : damaged) VARVE_TRY(catalog::erase_deletion(txn, note.series));
  return txn.commit();
}

}  // namespace varve::maintain
