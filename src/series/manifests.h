// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/id_runs.h"
#include "catalog/series_catalog.h"
#include "maintain/manifest_file.h"
#include "series/labels.h"
#include "series/series_parts.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::series {

/// Chunks to which open versions may refer, by version number.
using OpenChunks = std::map<VersionNumber, base::IdRuns>;
/// Returns the open versions that lose chunks of `dead`, with their remaining chunks.
[[nodiscard]] OpenChunks open_chunks_without(const OpenChunks& before, const base::IdRuns& dead);

/// The manifests of a series needed by no version.
struct DeadManifests {
  std::vector<VersionNumber> numbers;
  std::uint64_t bytes = 0;  ///< Size of the files, plus the decrease in the labels' size.
};

/// Writes and removes a series' manifests and labels: docs/ORDERING.md O19 to O22. Thread-safe.
class Manifests {
 public:
  /// Lifetime: `parts` outlives the object.
  explicit Manifests(const SeriesParts& parts) : parts_(parts), labels_(parts) {}

  /// Starts a manifest and adds `objects` objects of the version. The caller adds the records.
  [[nodiscard]] Result<std::unique_ptr<maintain::ManifestWriter>> begin(
      const catalog::VersionRecord& record, std::uint64_t objects);
  /// Writes the manifest of a sealed version again after a change of the version's lock (O27). Logs
  /// errors.
  void rewrite(const catalog::VersionRecord& record);
  [[nodiscard]] LabelsWriter& labels() { return labels_; }
  /// Writes missing manifests and removes unused manifests. Called at the opening of the
  /// repository.
  [[nodiscard]] Result<void> complete();
  /// Repeats the failed last writes of labels and of manifests with changed locks.
  /// Errors: the error of the write; also kNoSpace if complete() lacked space.
  [[nodiscard]] Result<void> write_left();
  /// Returns the manifests that are unused without the versions `gone`. `open` gives the chunks
  /// that the labels will list for open versions.
  [[nodiscard]] Result<DeadManifests> dead(const std::vector<catalog::VersionRecord>& gone,
                                           const OpenChunks& open = {});
  /// Removes dead manifests and writes the labels. The caller calls drop() after the commit that
  /// made the manifests dead. Returns whether the labels were written; logs errors.
  bool drop(const DeadManifests& dead);

 private:
  [[nodiscard]] Result<void> write_missing();
  [[nodiscard]] Result<void> write_again(const catalog::VersionRecord& record);

  const SeriesParts& parts_;
  LabelsWriter labels_;
  std::mutex mutex_;                   // One write at a time; innermost but for the catalog.
  std::set<VersionNumber> left_;       // Versions whose last rewrite() failed.
  std::optional<Error> lacked_space_;  // The error of complete() on a full disk.
};

}  // namespace varve::series
