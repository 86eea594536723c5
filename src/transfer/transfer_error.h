// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/result.h"

namespace varve::transfer {

/// Returns the error for a system call on the user's tree that failed with `errno_value`.
[[nodiscard]] Error system_error(const std::string& where, int errno_value);

/// Returns the error for a new entry that could not be made. Explains an entry that has the name.
[[nodiscard]] Error creation_error(const std::string& where, int errno_value);

/// Returns true if the transfer cannot continue with the next file: the disk is full or broken, or
/// the repository refuses everything.
[[nodiscard]] bool ends_transfer(const Error& error);

/// Returns the system's message for an errno.
[[nodiscard]] std::string errno_text(int errno_value);

}  // namespace varve::transfer
