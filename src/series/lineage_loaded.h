// SPDX-License-Identifier: Apache-2.0
// The parts of a lineage series that need its stored chunks.
#pragma once

#include <memory>
#include <utility>

#include "series/clones.h"
#include "series/lineage_arranging.h"
#include "series/lineage_deletion.h"
#include "series/lineage_open.h"
#include "series/lineage_series.h"
#include "series/lineage_store.h"
#include "series/seal.h"

namespace varve::series {

/// Lifetime: the arguments of the constructor outlive the object.
struct LineageSeries::Loaded {
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

}  // namespace varve::series
