// SPDX-License-Identifier: Apache-2.0
// Judges a state later than the catalog by the files needed for the state.
#pragma once

#include <string>
#include <vector>

#include "base/id_runs.h"
#include "maintain/history_check.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// The sealed versions that a rebuilt catalog has and the catalog in place lacks.
struct LaterState {
  /// The first version without a readable tree or without most of the data; "" if there is none.
  std::string hollow;
  std::string fault;        ///< The part missing from the version `hollow`.
  bool any_usable = false;  ///< True if a version has its tree and most of its data.
};

/// Compares a rebuilt catalog with the versions `known` to the catalog in place. A version has most
/// of its data if at least half of the chunks not shared with older known versions are stored.
/// `with_data`: false to check only the trees, because parity may restore the data.
/// Errors: the errors of the rebuilt catalog.
[[nodiscard]] Result<LaterState> judge_later_state(const meta::Env& rebuilt,
                                                   const std::vector<ListedVersion>& known,
                                                   bool with_data);

/// Returns the subset of `ids` located by the catalog. `ids` are chunks of one series or of the
/// pool.
/// Errors: the errors of the catalog.
[[nodiscard]] Result<base::IdRuns> located_chunks(const meta::Txn& txn, SeriesId series,
                                                  const base::IdRuns& ids);

}  // namespace varve::maintain
