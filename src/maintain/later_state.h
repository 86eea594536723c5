// SPDX-License-Identifier: Apache-2.0
// Judges a state that is later than the catalog by the files that it needs.
#pragma once

#include <string>
#include <vector>

#include "base/id_runs.h"
#include "maintain/history_check.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// The sealed versions that a catalog lacks and a rebuilt one has.
struct LaterState {
  /// The first version without its tree or most of its data; "" if each version has both.
  std::string hollow;
  std::string fault;        ///< The part that `hollow` lacks.
  bool any_usable = false;  ///< True if a version has its tree and most of its data.
};

/// Compares a rebuilt catalog with the versions `known` of the catalog in place. A version has most
/// of its data if half of the chunks are stored that it does not share with older known versions.
/// `with_data`: false to look at the trees only, because parity may restore the data.
/// Errors: those of the rebuilt catalog.
[[nodiscard]] Result<LaterState> judge_later_state(const meta::Env& rebuilt,
                                                   const std::vector<ListedVersion>& known,
                                                   bool with_data);

/// Returns those of `ids`, chunks of one series or of the pool, that the catalog locates.
/// Errors: those of the catalog.
[[nodiscard]] Result<base::IdRuns> located_chunks(const meta::Txn& txn, SeriesId series,
                                                  const base::IdRuns& ids);

}  // namespace varve::maintain
