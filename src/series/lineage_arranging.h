// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "series/manifests.h"
#include "series/series.h"
#include "series/series_parts.h"
#include "varve/arrange.h"
#include "varve/result.h"

namespace varve::layout {
struct EvictedSources;
struct PoolMergerParts;
struct PostPassHooks;
}  // namespace varve::layout

namespace varve::series {

struct LineageStore;

/// Arranges the chunks of a series. Thread-safe; needs no lock of the series.
class LineageArranging {
 public:
  /// Lifetime: the arguments outlive the object.
  LineageArranging(const SeriesParts& parts, LineageStore& store, Manifests& manifests)
      : parts_(parts), store_(store), manifests_(manifests) {}

  /// See Series::arrange().
  [[nodiscard]] Result<bool> arrange(const ArrangeOptions& options, Pace pace,
                                     ArrangeProgress& done);
  /// See Series::protect().
  [[nodiscard]] Result<bool> protect(const ArrangeOptions& options, ArrangeProgress& done);

 private:
  [[nodiscard]] Result<bool> merge_pool(layout::PoolMergerParts parts) const;
  /// Returns how arranging treats evicted files. Only if SeriesHost::eviction() is not
  /// null.
  [[nodiscard]] layout::EvictedSources evicted_sources(const ArrangeOptions& options,
                                                       VersionNumber newest) const;
  [[nodiscard]] Result<bool> post_pass(layout::PostPassHooks hooks,
                                       const PostPassOptions& options) const;

  const SeriesParts& parts_;
  LineageStore& store_;
  Manifests& manifests_;
  std::mutex parity_mutex_;  // Held while parity is made; innermost.
};

}  // namespace varve::series
