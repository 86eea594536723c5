// SPDX-License-Identifier: Apache-2.0
// The stored settings of a series, and the settings of new series (docs/FORMAT.md §7).
#pragma once

#include <string_view>

#include "base/coding.h"
#include "meta/lmdb.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::catalog {

/// The name of the setting with the settings of new series.
inline constexpr std::string_view kNewSeriesSetting = "new_series";

/// Returns true if a repository with `settings` needs the feature `pool` (docs/FORMAT.md §2): a
/// program without the feature cannot read the series' record.
[[nodiscard]] bool needs_pool_feature(const SeriesSettings& settings);

/// Appends settings to a series' record; nothing for the settings of a series without any choice.
void put_series_settings(base::ByteWriter& w, const SeriesSettings& settings);
/// Reads the settings at the end of a series' record.
/// Errors: kCorrupt; kUnsupported for values unknown to this build.
[[nodiscard]] Result<SeriesSettings> get_series_settings(base::ByteReader& r);

/// Returns the settings of new series: the stored settings, or `initial`.
/// Errors: as get_series_settings().
[[nodiscard]] Result<SeriesSettings> find_new_series_settings(const meta::Txn& txn,
                                                              const SeriesSettings& initial);
/// Stores the settings of new series, unless equal to `initial`.
[[nodiscard]] Result<void> put_new_series_settings(meta::WriteTxn& txn,
                                                   const SeriesSettings& settings,
                                                   const SeriesSettings& initial);

}  // namespace varve::catalog
