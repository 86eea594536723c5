// SPDX-License-Identifier: Apache-2.0
// Regular files of the source of a store. Programs may change the files during the store.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::transfer {

/// Opens a regular file of the directory `directory_fd` for reading, and sets `status` to the
/// file's status. Leaves the file's access time unchanged, if the user may do so.
/// Errors: kInvalid if the name is not a regular file's; the errors of the source.
[[nodiscard]] Result<base::UniqueFd> open_source_file(int directory_fd, const std::string& name,
                                                      struct stat& status);

/// Returns whether the content of an open file may have changed since the status `before`. The loss
/// of the last name alone does not change the content.
[[nodiscard]] Result<bool> has_changed(int fd, const struct stat& before);

}  // namespace varve::transfer
