// SPDX-License-Identifier: Apache-2.0
// Opens a folder that may have a repository.
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::remote {

/// Opens the file system of the folder; null if the folder is missing or has no superblock.
/// Errors: errors of reading the folder.
[[nodiscard]] Result<std::unique_ptr<io::FileSystem>> open_present(const std::string& folder,
                                                                   bool trust_owner);

}  // namespace varve::remote
