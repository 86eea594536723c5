// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "catalog/series_catalog.h"
#include "series/manifests.h"
#include "series/series_parts.h"
#include "series/version_records.h"
#include "varve/result.h"
#include "varve/retention.h"

namespace varve::catalog {
struct ObjectSet;
}  // namespace varve::catalog

namespace varve::layout {
struct DeletionPlan;
}  // namespace varve::layout

namespace varve::series {

class LineageOpen;
class PoolRemoval;
class Readers;
struct IndexFilesPlan;
struct LineageStore;

/// Deletes sealed versions of a series. The caller holds the series' mutex.
class LineageDeletion {
 public:
  /// Lifetime: the arguments outlive the object.
  LineageDeletion(const SeriesParts& parts, LineageStore& store, Manifests& manifests,
                  LineageOpen& open, Readers& readers)
      : parts_(parts),
        store_(store),
        manifests_(manifests),
        records_(*parts.catalog, parts.id),
        open_(open),
        readers_(readers) {}

  /// Returns the effect of run() on the same versions. Errors: as Repository::forecast_deletion().
  [[nodiscard]] Result<DeletionForecast> forecast(const std::vector<VersionNumber>& numbers,
                                                  const DeletionOptions& options);
  /// Errors: as Repository::delete_versions().
  [[nodiscard]] Result<DeletionForecast> run(const std::vector<VersionNumber>& numbers,
                                             const DeletionOptions& options);

  /// Errors: as Repository::check_deletion().
  [[nodiscard]] Result<void> check(VersionNumber number);

 private:
  /// Returns the records in ascending number, each once.
  [[nodiscard]] Result<std::vector<catalog::VersionRecord>> records_to_delete(
      const std::vector<VersionNumber>& numbers);
  /// Removes held versions from `gone` and returns the held versions: locked versions, and bases of
  /// open versions. Without `options.skip_held`, fails at the first held version. Calls `has_files`
  /// for each version not held otherwise.
  [[nodiscard]] Result<std::vector<HeldVersion>> leave_out_held(
      std::vector<catalog::VersionRecord>& gone, const DeletionOptions& options,
      const std::function<bool(const catalog::VersionRecord&)>& has_files);
  /// Sets `index` to the effect on the files of the index.
  [[nodiscard]] Result<DeletionForecast> forecast_plan(
      const layout::DeletionPlan& plan, const std::vector<catalog::VersionRecord>& gone,
      IndexFilesPlan& index);
  [[nodiscard]] Result<DeletionForecast> delete_records(
      const std::vector<catalog::VersionRecord>& gone);
  [[nodiscard]] Result<void> commit_deletion(const layout::DeletionPlan& plan,
                                             const PoolRemoval& shared,
                                             const std::vector<catalog::VersionRecord>& gone,
                                             const catalog::ObjectSet& objects,
                                             const OpenChunks& open);

  const SeriesParts& parts_;
  LineageStore& store_;
  Manifests& manifests_;
  const VersionRecords records_;
  LineageOpen& open_;
  Readers& readers_;
};

}  // namespace varve::series
