// SPDX-License-Identifier: Apache-2.0
// The one place where Varve's errors become errno values.
#pragma once

#include <string_view>

#include "varve/result.h"

namespace varve::fs {

/// The errno that POSIX asks for; positive. kNotFound is ENOENT here: the callers that mean
/// something else by it (lseek) say so themselves.
[[nodiscard]] int errno_of(const Error& error);

/// As errno_of(), and writes a log line for errors that an administrator has to know of
/// (damage, failing disks, a full disk). `operation` names the file system call.
[[nodiscard]] int report(std::string_view operation, const Error& error);

}  // namespace varve::fs
