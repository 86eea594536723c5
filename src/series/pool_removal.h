// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "catalog/series_catalog.h"
#include "layout/pool_store.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/retention.h"

namespace varve::series {

/// The pool's part of a deletion. Holds off changes to the users of the containers concerned until
/// the object is destroyed. Does nothing if no deleted version uses the pool.
class PoolRemoval {
 public:
  /// Plans the deletion of the versions `gone`. From now on, open versions cannot begin to use the
  /// dying containers.
  [[nodiscard]] static Result<PoolRemoval> plan(const SeriesParts& parts, const meta::Txn& txn,
                                                const std::vector<catalog::VersionRecord>& gone);
  /// Forecasts the deletion as of after the deletion of `before`.
  [[nodiscard]] static Result<PoolRemoval> forecast(const SeriesParts& parts, const meta::Txn& txn,
                                                    const std::vector<catalog::VersionRecord>& gone,
                                                    const std::vector<VersionKey>& before);
  PoolRemoval(PoolRemoval&& other) noexcept;
  PoolRemoval& operator=(PoolRemoval&&) = delete;
  /// Takes the plan of a deletion back, unless free() was called.
  ~PoolRemoval();

  /// Adds the sizes. Errors: those of reading the catalog.
  [[nodiscard]] Result<void> add_to(DeletionForecast& forecast) const;
  [[nodiscard]] Result<void> commit(meta::WriteTxn& txn) const;
  /// Frees the space after the commit.
  [[nodiscard]] Result<void> free();

 private:
  PoolRemoval() = default;
  /// Returns a removal with a snapshot, unless no version of `gone` uses the pool.
  [[nodiscard]] static Result<PoolRemoval> begin(const SeriesParts& parts, const meta::Txn& txn,
                                                 const std::vector<catalog::VersionRecord>& gone);

  std::vector<layout::PoolOwner> gone_;
  std::unique_ptr<layout::PoolStore::Exclusive> exclusive_;
  Pool* pool_ = nullptr;
  bool retired_ = false;
  std::unique_ptr<meta::ReadTxn> snapshot_;  // Used by the plan.
  std::optional<layout::PoolDeletion> plan_;
};

}  // namespace varve::series
