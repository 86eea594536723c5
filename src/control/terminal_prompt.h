// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::control {

/// Returns the terminal to ask: standard input, or the controlling terminal if standard input is a
/// pipe or a file with data and standard error is a terminal. Returns an invalid descriptor if
/// there is none, or if the process is in the background.
[[nodiscard]] base::UniqueFd open_terminal();

/// Asks for a secret on a terminal, without showing it. The prompt goes to standard error.
/// Errors: kInterrupted for Ctrl-C, and for Ctrl-D or the end of input in an empty line; kIo.
[[nodiscard]] Result<Secret> ask_terminal(const base::UniqueFd& terminal,
                                          const std::string& prompt);

}  // namespace varve::control
