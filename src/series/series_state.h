// SPDX-License-Identifier: Apache-2.0
// The parts of a series.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "catalog/series_catalog.h"
#include "series/clones.h"
#include "series/lineage_arranging.h"
#include "series/lineage_deletion.h"
#include "series/lineage_open.h"
#include "series/lineage_store.h"
#include "series/manifests.h"
#include "series/readers.h"
#include "series/seal.h"
#include "series/series_parts.h"
#include "series/version_records.h"
#include "varve/result.h"

namespace varve::series {

/// The parts that need the stored chunks. Lifetime: the arguments of the constructor outlive the
/// object.
struct SeriesLoaded {
  SeriesLoaded(const SeriesParts& parts, Manifests& manifests, Readers& readers,
               std::unique_ptr<LineageStore> opened)
      : store(std::move(opened)),
        open(parts, *store, manifests),
        seal(parts, *store, manifests, open, readers),
        deletion(parts, *store, manifests, open, readers),
        clones(parts, *store, manifests, open),
        arranging(parts, *store, manifests) {}

  const std::unique_ptr<LineageStore> store;
  LineageOpen open;
  VersionSeal seal;
  LineageDeletion deletion;
  VersionClones clones;
  LineageArranging arranging;
};

/// Lock order: `mutex`, then `load_mutex` and the mutexes of the parts, which are innermost.
/// Lifetime: the objects of `parts` outlive the state.
struct SeriesState {
  explicit SeriesState(const SeriesParts& its_parts);

  /// Returns the parts that need the stored chunks. The first call opens the stored chunks; after a
  /// failure, the next call tries again.
  [[nodiscard]] Result<SeriesLoaded*> load();
  /// Returns the parts if load() succeeded before, or null.
  [[nodiscard]] SeriesLoaded* loaded();
  /// Sets values missing in an open version's record. Another process may be writing the version.
  /// Unreadable sizes stay 0.
  [[nodiscard]] Result<void> measure_open(catalog::VersionRecord& record);
  /// Seals the present open version, to allow the next version. The caller holds `mutex`.
  /// Errors: kBusy if the open version must not be sealed.
  [[nodiscard]] Result<void> end_present_version(SeriesLoaded& use);

  const SeriesParts parts;
  const VersionRecords records;
  Manifests manifests;
  Readers readers;
  std::mutex mutex;  // Serialises opening, sealing, abandoning and deleting versions.
  std::mutex load_mutex;
  std::unique_ptr<SeriesLoaded> opened;
};

}  // namespace varve::series
