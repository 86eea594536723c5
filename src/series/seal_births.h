// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/id_runs.h"
#include "catalog/series_catalog.h"
#include "format/birth_mark.h"
#include "layout/series_layout.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// The part of a seal that completes the births of the version: its own gets a mark even if the
/// version stored no chunks, since it stored pages; each gets the digest of its chunks to which the
/// version refers. Two histories that share a mark, as after a roll-back of a running
/// virtual machine, differ in the digest.
class SealBirths {
 public:
  /// Computes the digests. `chunks`: those to which the version of `record` refers, all stored. A
  /// birth of which a chunk cannot be read gets no digest; the log says so.
  [[nodiscard]] static Result<SealBirths> begin(const SeriesParts& parts,
                                                layout::SeriesLayout& layout,
                                                const catalog::VersionRecord& record,
                                                const base::IdRuns& chunks);
  [[nodiscard]] Result<void> commit(meta::WriteTxn& txn) const;

 private:
  /// Finds the births of the version, and makes its own if it is missing.
  [[nodiscard]] Result<void> find(const SeriesParts& parts, const catalog::VersionRecord& record,
                                  const base::IdRuns& chunks);

  StoreId own_{};
  format::Births births_;
};

}  // namespace varve::series
