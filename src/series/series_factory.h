// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "series/series.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// Makes the implementation for the series' placement. Reads and writes no file: the first
/// use of a version's data opens the stored chunks.
/// Errors: kUnsupported for a placement that this build does not have.
/// Lifetime: what `parts` points to outlives the series.
[[nodiscard]] Result<std::unique_ptr<Series>> make_series(const SeriesParts& parts);

}  // namespace varve::series
