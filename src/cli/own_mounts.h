// SPDX-License-Identifier: Apache-2.0
// The mounts of a repository as sources of a store into it.
#pragma once

#include <string>
#include <vector>

#include "control/requests.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::cli {

/// Returns the mount points of the repository in the directory. The repository already stores their
/// entries.
[[nodiscard]] std::vector<DirectoryIdentity> find_own_mounts(const std::string& repository,
                                                             const std::string& directory);

/// Leaves out all directories in mounts of the repository, even if visible through further mounts:
/// a version would be stored in itself.
/// Errors: kInvalid if the directory is in a mount of the repository.
[[nodiscard]] Result<void> leave_mounts_out(const std::string& repository,
                                            control::StoreTask& task);

/// Refuses an open file in a mount of the repository: the daemon would wait for itself.
/// Errors: kInvalid.
[[nodiscard]] Result<void> check_outside_mounts(const std::string& repository, int descriptor);

}  // namespace varve::cli
