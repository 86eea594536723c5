// SPDX-License-Identifier: Apache-2.0
// The data of a folder not yet in its object store.
#pragma once

#include <cstdint>
#include <string>

#include "varve/result.h"

namespace varve {

/// A writer's staged data: data waiting for the object store.
struct StagedData {
  std::uint64_t bytes = 0;      ///< Includes data written out of order.
  std::uint64_t bytes_max = 0;  ///< The limit above which writers wait.
};
/// Returns the staged data of a folder; zeros unless the folder writes to an object store. Lists
/// the folder's files, and makes no request. No part of the calling process may have the repository
/// open.
/// Errors: those of reading the folder.
[[nodiscard]] Result<StagedData> staged_data(const std::string& folder, bool trust_owner = false);

}  // namespace varve
