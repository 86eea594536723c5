// SPDX-License-Identifier: Apache-2.0
#include "series/series_factory.h"

#include "series/lineage_series.h"

namespace varve::series {

std::unique_ptr<Series> make_series(const SeriesParts& parts) {
  return std::make_unique<LineageSeries>(parts);
}

}  // namespace varve::series
