// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::catalog {
class ObjectReader;
}  // namespace varve::catalog

namespace varve::layout {
class CategoryLayout;
class SeriesLayout;
}  // namespace varve::layout

namespace varve::store {
class SegmentStore;
}  // namespace varve::store

namespace varve::series {

/// The stored chunks and objects of a lineage series.
struct LineageStore {
  LineageStore();
  LineageStore(const LineageStore&) = delete;
  LineageStore& operator=(const LineageStore&) = delete;
  ~LineageStore();

  std::unique_ptr<store::SegmentStore> segments;  ///< Outlives the layout.
  std::unique_ptr<layout::CategoryLayout> layout;
  std::unique_ptr<layout::SeriesLayout> all;  ///< The layout together with the pool.
  std::unique_ptr<catalog::ObjectReader> objects;

  /// Opens the series' layout. Unless read-only, removes the remains of a crash in the files.
  /// Lifetime: `parts` outlives the store.
  [[nodiscard]] static Result<std::unique_ptr<LineageStore>> open(const SeriesParts& parts);
  /// Removes all segments and volumes of the series, including evicted files, which no folder
  /// shows.
  [[nodiscard]] static Result<void> remove_files(const SeriesParts& parts);
};

}  // namespace varve::series
