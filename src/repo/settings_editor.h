// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "repo/repository_folder.h"
#include "repo/series_table.h"
#include "varve/arrange.h"
#include "varve/pool_index.h"
#include "varve/refused_store.h"
#include "varve/result.h"
#include "varve/types.h"
#include "varve/upkeep.h"

namespace varve::repo {

class RequiredFeatures;

/// The settings of an open repository, and the notes of refused stores, in the catalog and in the
/// labels. Functions named as functions of Repository have the same errors. Thread-safe.
class SettingsEditor {
 public:
  /// Lifetime: the arguments outlive the object.
  SettingsEditor(RepositoryFolder& folder, RequiredFeatures& features, SeriesTable& series)
      : folder_(folder), features_(features), series_(series) {}

  [[nodiscard]] Result<SeriesSettings> series_defaults() const;
  [[nodiscard]] Result<SeriesSettings> change_series_defaults(const SeriesOptions& changes);
  [[nodiscard]] Result<PoolIndexChoice> pool_index() const;
  [[nodiscard]] Result<void> set_pool_index(const PoolIndexChoice& choice);
  [[nodiscard]] Result<UpkeepSettings> upkeep_settings() const;
  [[nodiscard]] Result<void> set_upkeep_settings(const UpkeepSettings& settings);
  [[nodiscard]] Result<ArrangeSettings> arrange_settings() const;
  [[nodiscard]] Result<void> set_arrange_settings(const ArrangeSettings& settings);
  [[nodiscard]] Result<std::optional<RefusedStore>> refused_store(SeriesId series) const;
  [[nodiscard]] Result<void> note_refused_store(SeriesId series, RefusalReason reason);

 private:
  /// Writes the labels of all series, and requests a replication. Call after a commit.
  void complete_change();

  RepositoryFolder& folder_;
  RequiredFeatures& features_;
  SeriesTable& series_;
};

}  // namespace varve::repo
