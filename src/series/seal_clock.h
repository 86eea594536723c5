// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "catalog/clock_record.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// Sets the record's seal time. Returns the clock's record, which the seal commits. Sets `warning`
/// to a sentence for the user if the clock contradicts earlier seals.
[[nodiscard]] Result<catalog::ClockRecord> choose_seal_time(const SeriesParts& parts,
                                                            catalog::VersionRecord& record,
                                                            std::string& warning);

/// Returns the lock that keeps a version from being deleted, as an error; nullopt without one.
/// `force_clock`: believes a clock that has jumped ahead.
[[nodiscard]] Result<std::optional<Error>> lock_of(const SeriesParts& parts, const meta::Txn& txn,
                                                   const catalog::VersionRecord& record,
                                                   bool force_clock);

}  // namespace varve::series
