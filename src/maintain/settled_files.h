// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meta/lmdb.h"
#include "parity/upkeep.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Returns the segments and volumes of a series that can only be cut or removed: all files not
/// being written by an open version. For kPoolOwner, returns all files of the pool, because no file
/// of the pool is extended. In ascending number.
[[nodiscard]] Result<std::vector<parity::DataFile>> settled_files(const meta::Txn& txn,
                                                                  SeriesId owner);

}  // namespace varve::maintain
