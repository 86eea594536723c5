// SPDX-License-Identifier: Apache-2.0
// The data of a folder that its object store lacks.
#pragma once

#include <cstdint>
#include <string>

#include "varve/result.h"

namespace varve {

/// The data of a writer's folder that waits for the object store.
struct StagedData {
  std::uint64_t bytes = 0;      ///< Data that was written out of order is in it, too.
  std::uint64_t bytes_max = 0;  ///< The bound, beyond which writers wait.
};
/// Returns it; zeros for a folder that writes to no object store. Lists the folder's files, and
/// makes no request. No part of this process may have the repository open.
/// Errors: those of reading the folder.
[[nodiscard]] Result<StagedData> staged_data(const std::string& folder, bool trust_owner = false);

}  // namespace varve
