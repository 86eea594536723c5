// SPDX-License-Identifier: Apache-2.0
// Keeps files under new names, so that a repair loses no file.
#pragma once

#include <string>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns an unused path: `stem` followed by "-" and a number.
[[nodiscard]] Result<std::string> free_name(io::FileSystem& files, const std::string& stem);

/// Renames a file or folder to an unused name, and returns the new path.
[[nodiscard]] Result<std::string> rename_to_free_name(io::FileSystem& files,
                                                      const std::string& path);

/// Copies a file beside itself under an unused name, and returns the path of the copy.
[[nodiscard]] Result<std::string> copy_to_free_name(io::FileSystem& files, const std::string& path);

}  // namespace varve::maintain
