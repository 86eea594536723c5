// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::control {

/// Asks for a secret on the terminal that is standard input, without showing it.
/// Errors: kInterrupted for Ctrl-C, and for Ctrl-D or the end of input in an empty line; kIo.
[[nodiscard]] Result<Secret> ask_terminal(const std::string& prompt);

}  // namespace varve::control
