// SPDX-License-Identifier: Apache-2.0
// Regular files of the source of a store, which other programs may change meanwhile.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::transfer {

/// Opens a regular file of the directory `directory_fd` for reading, and sets `status` to its
/// status. Leaves the file's access time as it is, if the user may do so.
/// Errors: kInvalid if the name is not a regular file's; those of the source.
[[nodiscard]] Result<base::UniqueFd> open_source_file(int directory_fd, const std::string& name,
                                                      struct stat& status);

/// Returns whether the content of an open file may have changed since it had the status `before`.
/// A file that only lost its last name has its content still.
[[nodiscard]] Result<bool> has_changed(int fd, const struct stat& before);

}  // namespace varve::transfer
