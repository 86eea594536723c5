// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "series/series.h"
#include "series/series_parts.h"

namespace varve::series {

/// Makes the implementation of a series of any placement. A version gets the placement in the
/// series' record at the version's opening. Reads and writes no file: the first use of a version's
/// data opens the stored chunks.
/// Lifetime: the objects of `parts` outlive the series.
[[nodiscard]] std::unique_ptr<Series> make_series(const SeriesParts& parts);

}  // namespace varve::series
