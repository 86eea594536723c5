// SPDX-License-Identifier: Apache-2.0
// Finds damaged files of an index. They are derived: without one, a writer reads the fingerprints
// from containers.
#pragma once

#include <vector>

#include "index/index_fault.h"
#include "index/index_run.h"
#include "index/pool_runs.h"

namespace varve::index {

/// Reads every block of these runs. A run that is missing is no fault.
[[nodiscard]] std::vector<IndexFault> faults_of_runs(const RunFolder& folder,
                                                     const std::vector<RunRef>& runs);

/// Reads the files of the pool's index in a folder, of whichever kind. Missing files are no fault,
/// nor is the end of a log that a crash left incomplete. A writer may be active.
[[nodiscard]] std::vector<IndexFault> faults_of_pool_index(const PoolIndexFolder& folder);

}  // namespace varve::index
