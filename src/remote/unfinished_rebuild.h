// SPDX-License-Identifier: Apache-2.0
// The mark of a folder whose catalog is being rebuilt from the store. docs/decisions/165.
#pragma once

#include <string>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::remote {

/// The name of the mark.
inline constexpr const char* kUnfinishedRebuild = "rebuilding.tmp";

/// Returns success unless a rebuild was interrupted in the folder. Errors: kExists with advice.
[[nodiscard]] Result<void> refuse_unfinished_rebuild(io::FileSystem& files,
                                                     const std::string& folder);
/// Removes all that an interrupted rebuild has left in the folder, except for the mark. Does
/// nothing without the mark, and in a folder that writes. Errors: kLocked while another process
/// rebuilds in the folder; errors of the disk.
[[nodiscard]] Result<void> clear_unfinished_rebuild(io::FileSystem& files,
                                                    const std::string& folder);

}  // namespace varve::remote
