// SPDX-License-Identifier: Apache-2.0
// The names of a zip archive's members, from its directory: libarchive alters some of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"

namespace varve::transfer {

/// Returns the names of all members, in the order of their places in the archive, with the bytes
/// that they have there. A name in the Unicode path field of a member counts before its other name.
/// Backslashes become slashes if DOS or Windows made the member and its name has no slash.
/// `fd` is a regular file; its position stays.
/// Errors: kInvalid if the directory is damaged, or if a name cannot be told from another one; kIo.
[[nodiscard]] Result<std::vector<std::string>> read_zip_names(int fd);

/// True if libarchive may have made the name `altered` from the name `own`.
[[nodiscard]] bool is_same_zip_name(std::string_view altered, std::string_view own);

}  // namespace varve::transfer
