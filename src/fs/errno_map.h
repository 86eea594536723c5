// SPDX-License-Identifier: Apache-2.0
// Translates errors of Varve to errno values. No other file does.
#pragma once

#include <string_view>

#include "varve/result.h"

namespace varve::fs {

/// Returns the positive errno that POSIX prescribes for the error's code. For kIo that is the errno
/// of the system call that failed, if there was one.
[[nodiscard]] int errno_of(const Error& error);

/// Returns errno_of(), and logs errors that need an administrator: damage, a failing disk, a full
/// disk. `operation` is the name of the system call.
[[nodiscard]] int report(std::string_view operation, const Error& error);

}  // namespace varve::fs
