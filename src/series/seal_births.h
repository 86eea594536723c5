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

/// The part of a seal that completes the births of the version. The version's own birth gets a mark
/// even without stored chunks, since the version stored pages. Each birth gets the digest of its
/// chunks to which the version refers. Two histories with a common mark, as after a roll-back of a
/// running virtual machine, differ in the digest.
class SealBirths {
 public:
  /// Computes the digests. `chunks`: the chunks to which the version of `record` refers, all
  /// stored. A birth with an unreadable chunk gets no digest, and a line in the log.
  [[nodiscard]] static Result<SealBirths> begin(const SeriesParts& parts,
                                                layout::SeriesLayout& layout,
                                                const catalog::VersionRecord& record,
                                                const base::IdRuns& chunks);
  [[nodiscard]] Result<void> commit(meta::WriteTxn& txn) const;

 private:
  /// Finds the births of the version, and adds the version's own birth if missing.
  [[nodiscard]] Result<void> find(const SeriesParts& parts, const catalog::VersionRecord& record,
                                  const base::IdRuns& chunks);

  StoreId own_{};
  format::Births births_;
};

}  // namespace varve::series
