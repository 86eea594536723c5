// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "repo/repository_folder.h"
#include "varve/arrange.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::repo {

/// The names of required features in the superblock of an open repository. Each name is on disk
/// before the first record that needs the feature (docs/decisions/057). Labels have a copy of the
/// superblock. Thread-safe.
class RequiredFeatures {
 public:
  /// Lifetime: `folder` outlives the object.
  explicit RequiredFeatures(RepositoryFolder& folder) : folder_(folder) {}

  /// Returns the settings of new series chosen at the creation of the repository.
  [[nodiscard]] SeriesSettings initial_settings() const;
  /// Adds the feature needed by settings of series. The caller has begun a transaction.
  [[nodiscard]] Result<void> require_for(const SeriesSettings& settings);
  /// Adds the feature needed by settings of arranging. The caller has begun a transaction.
  [[nodiscard]] Result<void> require_for(const ArrangeSettings& settings);
  /// Adds the feature `pool-aliases`. Returns whether the feature is new: all labels are then to be
  /// written.
  [[nodiscard]] Result<bool> require_aliases();
  /// Adds the features needed by the present series. Logs errors.
  void complete(const std::vector<SeriesInfo>& all);

  /// Returns whether the superblock in labels may lack a feature.
  [[nodiscard]] bool labels_lack_any() const { return labels_lack_any_; }
  /// Call before all labels are written. Returns labels_lack_any() before the call.
  bool begin_labels() { return labels_lack_any_.exchange(false); }

 private:
  RepositoryFolder& folder_;
  std::atomic<bool> labels_lack_any_ = false;
};

}  // namespace varve::repo
