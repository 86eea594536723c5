// SPDX-License-Identifier: Apache-2.0
#include "series/lineage_store.h"

#include <utility>

#include "catalog/object_store.h"
#include "layout/category_layout.h"
#include "layout/series_layout.h"
#include "series/pool.h"
#include "store/segment_store.h"

namespace varve::series {

LineageStore::LineageStore() = default;
LineageStore::~LineageStore() = default;

Result<std::unique_ptr<LineageStore>> LineageStore::open(const SeriesParts& parts) {
  auto store = std::make_unique<LineageStore>();
  layout::CategoryLayoutOptions options;
  options.series = parts.id;
  options.store = parts.store;
  options.read_only = parts.options->read_only;
  options.open_files = parts.open_files;
  options.metrics = &parts.metrics->layout;
  options.damage = parts.damage;
  store->segments = store::open_store(parts.open_store, *parts.files, parts.directory());
  // Cuts off the remains of a crash. On a copy-on-write disk, cutting allocates new blocks.
  VARVE_TRY(parts.with_reserve([&]() -> Result<void> {
    VARVE_TRY_ASSIGN(store->layout, layout::CategoryLayout::open(
                                        *parts.catalog, *store->segments, parts.codecs->frames(),
                                        parts.writing.compressors, options));
    return {};
  }));
  store->all = std::make_unique<layout::SeriesLayout>(
      *store->layout, [&parts]() -> Result<layout::PoolStore*> {
        VARVE_TRY_ASSIGN(auto* const pool, parts.host->pool());
        return &pool->store();
      });
  store->objects = std::make_unique<catalog::ObjectReader>(*parts.catalog, parts.id, parts.pages);
  return store;
}

Result<void> LineageStore::remove_files(const SeriesParts& parts) {
  const auto segments = store::open_store(parts.open_store, *parts.files, parts.directory());
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY_ASSIGN(const auto files, segments->list(kind));
    for (const auto& file : files) {
      const auto removed = segments->remove(file);
      if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed;
    }
  }
  return {};
}

}  // namespace varve::series
