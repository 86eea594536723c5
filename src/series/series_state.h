// SPDX-License-Identifier: Apache-2.0
// The parts of a series.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "series/clones.h"
#include "series/lineage_arranging.h"
#include "series/lineage_deletion.h"
#include "series/lineage_open.h"
#include "series/lineage_store.h"
#include "series/manifests.h"
#include "series/readers.h"
#include "series/seal.h"
#include "series/series.h"
#include "series/series_parts.h"
#include "series/version_records.h"

namespace varve::series {

/// The parts that need the stored chunks. Lifetime: the arguments of the constructor outlive the
/// object.
struct Series::Loaded {
  Loaded(const SeriesParts& parts, Manifests& manifests, Readers& readers,
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
struct Series::State {
  explicit State(const SeriesParts& its_parts);

  const SeriesParts parts;
  const VersionRecords records;
  Manifests manifests;
  Readers readers;
  std::mutex mutex;  // Serialises opening, sealing, abandoning and deleting versions.
  std::mutex load_mutex;
  std::unique_ptr<Loaded> loaded;
};

}  // namespace varve::series
