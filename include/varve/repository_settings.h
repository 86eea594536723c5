// SPDX-License-Identifier: Apache-2.0
// The part of a repository for its settings.
#pragma once

#include <cstdint>
#include <optional>

#include "varve/options.h"
#include "varve/pool_index.h"
#include "varve/result.h"
#include "varve/rewrite.h"
#include "varve/types.h"
#include "varve/upkeep.h"

namespace varve {

struct ArrangeSettings;  // varve/arrange.h
struct RefusedStore;     // varve/refused_store.h
enum class RefusalReason : std::uint8_t;

/// The part of a Repository for its settings, and for the record of refused stores. Thread-safe.
/// Errors common to all functions: see Repository.
class RepositorySettings {
 public:
  virtual ~RepositorySettings() = default;
  /// Returns the settings of new series.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<SeriesSettings> series_defaults() = 0;
  /// Changes the settings of new series. Returns the changed settings.
  /// Errors: kUnsupported for settings unknown to the build.
  [[nodiscard]] virtual Result<SeriesSettings> change_series_defaults(
      const SeriesOptions& changes) = 0;
  /// Changes settings of a series, for versions opened later. Returns the settings.
  /// Errors: kNotFound; kBusy for another placement while a version of the series is open;
  /// kUnsupported for settings unknown to the build.
  [[nodiscard]] virtual Result<SeriesSettings> change_series(SeriesId series,
                                                             const SeriesOptions& changes) = 0;
  /// Returns the index chosen for the pool.
  /// Errors: kUnsupported for an index unknown to the build.
  [[nodiscard]] virtual Result<PoolIndexChoice> pool_index() = 0;
  /// Chooses the index of the pool. The present process keeps its opened index. The next process to
  /// open the repository builds the chosen index from the containers, and uses the chosen index.
  /// Errors: kUnsupported for an index unknown to the build.
  [[nodiscard]] virtual Result<void> set_pool_index(const PoolIndexChoice& choice) = 0;
  /// Returns the defaults for arranging and pruning.
  /// Errors: kUnsupported for settings of a newer Varve.
  [[nodiscard]] virtual Result<UpkeepSettings> upkeep_settings() = 0;
  /// Stores the defaults for arranging and pruning. Background arranging uses a changed rate from
  /// the next arranging on.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<void> set_upkeep_settings(const UpkeepSettings& settings) = 0;
  /// Returns the settings of the arranger.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<ArrangeSettings> arrange_settings() = 0;
  /// Stores new settings of the arranger.
  /// Errors: kInvalid if a value is out of its range.
  [[nodiscard]] virtual Result<void> set_arrange_settings(const ArrangeSettings& settings) = 0;
  /// Returns the last refused store into a series; nullopt if there was none, or if a newer version
  /// was sealed since then.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::optional<RefusedStore>> refused_store(SeriesId series) = 0;
  /// Records a refused store into a series, at the present time.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<void> note_refused_store(SeriesId series, RefusalReason reason) = 0;
};

}  // namespace varve
