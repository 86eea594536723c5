// SPDX-License-Identifier: Apache-2.0
// Finds damaged files of an index. Index files are derived: without a file, a writer reads the
// fingerprints from containers.
#pragma once

#include <vector>

#include "index/index_fault.h"
#include "index/index_run.h"
#include "index/pool_runs.h"

namespace varve::index {

/// Reads every block of the runs. A missing run is no fault.
[[nodiscard]] std::vector<IndexFault> faults_of_runs(const RunFolder& folder,
                                                     const std::vector<RunRef>& runs);

/// Reads the files of the pool's index in a folder, for any kind of index. Missing files are no
/// fault, and neither is the incomplete end of a log after a crash. A writer may be active.
[[nodiscard]] std::vector<IndexFault> faults_of_pool_index(const PoolIndexFolder& folder);

}  // namespace varve::index
