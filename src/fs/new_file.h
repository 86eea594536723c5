// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "fs/caller.h"
#include "fs/file_stat.h"
#include "fs/node_table.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::fs {

/// Returns the attributes of a file that `caller` creates in `directory`. The version handles the
/// group of a set-group-ID directory. Varve applies access control lists and the umask: with
/// FUSE_CAP_DONT_MASK the kernel leaves them to the daemon.
/// Errors: kCorrupt if the directory's default ACL cannot be decoded.
[[nodiscard]] Result<NewFile> new_file(const Caller& caller, const ShowOptions& show,
                                       const Node& directory, mode_t mode);

}  // namespace varve::fs
