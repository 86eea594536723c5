// SPDX-License-Identifier: Apache-2.0
// The names of a zip archive's members, from the archive's directory: libarchive alters some names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"

namespace varve::transfer {

/// Returns the names of all members, in the order of the members' places in the archive, byte by
/// byte as in the archive. A name in the Unicode path field of a member counts before the plain
/// name. Backslashes become slashes if DOS or Windows made the member and the name has no slash.
/// `fd` is a regular file; the position stays.
/// Errors: kInvalid if the directory is damaged, or if two names cannot be told apart; kIo.
[[nodiscard]] Result<std::vector<std::string>> read_zip_names(int fd);

/// True if libarchive may have made the name `altered` from the name `own`.
[[nodiscard]] bool is_same_zip_name(std::string_view altered, std::string_view own);

}  // namespace varve::transfer
