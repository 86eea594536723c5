// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/result.h"

namespace varve::transfer {

/// The error for a system call that just failed with `errno_value` on the user's tree.
[[nodiscard]] Error system_error(const std::string& where, int errno_value);

/// True where going on with the next file makes no sense: the disk is full or broken, the
/// repository refuses everything.
[[nodiscard]] bool ends_transfer(const Error& error);

/// "What the system says" for an errno.
[[nodiscard]] std::string errno_text(int errno_value);

}  // namespace varve::transfer
