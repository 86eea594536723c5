// SPDX-License-Identifier: Apache-2.0
// The only translation of Varve's errors to errno values.
#pragma once

#include <string_view>

#include "varve/result.h"

namespace varve::fs {

/// Returns the positive errno prescribed by POSIX for the error's code. For kIo, the errno of the
/// failed system call, if there was a system call.
[[nodiscard]] int errno_of(const Error& error);

/// Returns errno_of(), and logs errors for the administrator: damage, a failing disk, a full disk.
/// `operation` is the name of the system call.
[[nodiscard]] int report(std::string_view operation, const Error& error);

}  // namespace varve::fs
