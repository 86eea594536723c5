// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "layout/pool_store.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// The pool's part of a seal: the version becomes a user of its containers.
class PoolSeal {
 public:
  /// Finds the pool's containers with chunks of `chunks`, and holds off changes to the containers'
  /// users until the object is destroyed. Adds the bytes first used by the version to the record's
  /// unique_bytes and stored_bytes. Does nothing if no chunk is in the pool.
  /// Errors: kCorrupt if a chunk added by the version is not stored: the seal must not hide the
  /// loss.
  [[nodiscard]] static Result<PoolSeal> begin(const SeriesParts& parts,
                                              catalog::VersionRecord& record,
                                              const base::IdRuns& chunks,
                                              std::optional<VersionNumber> base);
  /// Adds the version to the users of the containers.
  [[nodiscard]] Result<void> commit(meta::WriteTxn& txn);

 private:
  PoolSeal() = default;

  layout::PoolOwner owner_;
  layout::PoolStore* store_ = nullptr;
  std::unique_ptr<layout::PoolStore::Exclusive> exclusive_;
  std::vector<catalog::PoolUse> uses_;
};

}  // namespace varve::series
