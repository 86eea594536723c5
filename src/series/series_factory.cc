// SPDX-License-Identifier: Apache-2.0
#include "series/series_factory.h"

#include "series/lineage_series.h"
#include "varve/placement.h"

namespace varve::series {

Result<std::unique_ptr<Series>> make_series(const SeriesParts& parts) {
  VARVE_TRY(check_placement(parts.placement));
  return std::unique_ptr<Series>(std::make_unique<LineageSeries>(parts));
}

}  // namespace varve::series
