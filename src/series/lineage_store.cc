// SPDX-License-Identifier: Apache-2.0
#include "series/lineage_store.h"

#include <utility>

namespace varve::series {

Result<std::unique_ptr<LineageStore>> LineageStore::open(const SeriesParts& parts) {
  auto store = std::make_unique<LineageStore>();
  layout::CategoryLayoutOptions options;
  options.series = parts.id;
  options.series_directory = parts.directory();
  options.read_only = parts.options->read_only;
  options.codec = parts.superblock->parameters.codec;
  options.zstd_level = parts.superblock->parameters.zstd_level;
  VARVE_TRY_ASSIGN(store->layout, layout::CategoryLayout::open(*parts.catalog, *parts.files,
                                                               parts.compressors, options));
  store->objects = std::make_unique<catalog::ObjectReader>(*parts.catalog, parts.id);
  return store;
}

}  // namespace varve::series
