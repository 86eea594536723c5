// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/id_runs.h"
#include "catalog/series_catalog.h"
#include "series/manifests.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::index {
class NeighbourIndex;
class StoredFingerprints;
}  // namespace varve::index

namespace varve::layout {
struct LiveVersion;
}  // namespace varve::layout

namespace varve::series {

struct LineageStore;

/// The neighbour index of a series' open version. The caller holds the series' mutex.
class LineageIndex {
 public:
  /// Lifetime: the arguments outlive the object.
  LineageIndex(const SeriesParts& parts, LineageStore& store, Manifests& manifests);
  LineageIndex(const LineageIndex&) = delete;
  LineageIndex& operator=(const LineageIndex&) = delete;
  ~LineageIndex();

  /// Loads the index of an open version.
  /// Errors: kCorrupt if the version's staging folder is lost.
  [[nodiscard]] Result<std::shared_ptr<index::NeighbourIndex>> load(
      const catalog::VersionRecord& record);
  /// Makes `index` the present one, until close().
  void use(std::shared_ptr<index::NeighbourIndex> index);
  /// Saves the index of the next version's window, before the seal's commit. `record` and `chunks`
  /// are the size and the chunks of the version being sealed. Returns true for a side version.
  [[nodiscard]] Result<bool> save_window(const catalog::VersionRecord& record,
                                         const base::IdRuns& chunks);
  /// Hides chunks from the open version. Returns the newly hidden chunks. An index must be loaded.
  base::IdRuns retire(const base::IdRuns& ids);
  /// Reverts retire() for the chunks. Does nothing without a loaded index.
  void restore(const base::IdRuns& ids);
  /// Drops the present index. A handle on a stopped version may keep it, even after the repository.
  void close();

 private:
  [[nodiscard]] Result<base::IdRuns> own_window(const meta::Txn& txn,
                                                const layout::LiveVersion& version) const;
  /// Returns the chunks of the series' store to which an open version may refer besides its own.
  /// The first call records the chunks.
  [[nodiscard]] Result<base::IdRuns> open_window(const catalog::VersionRecord& record);
  /// Opens the runs of the newest sealed version's index, and removes all other runs.
  [[nodiscard]] Result<void> load_files(index::NeighbourIndex& index,
                                        std::optional<VersionNumber> parent);

  const SeriesParts& parts_;
  LineageStore& store_;
  Manifests& manifests_;
  std::unique_ptr<index::StoredFingerprints> fingerprints_;  // Used by the loaded index.
  std::shared_ptr<index::NeighbourIndex> index_;
};

}  // namespace varve::series
