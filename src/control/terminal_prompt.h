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

/// Asks for a secret on a terminal, without showing it. The prompt goes to standard error. One
/// thread at a time may ask. A signal that ends or stops the process makes the terminal show typed
/// text again first. Code that ends the process in another way calls show_typed_text().
/// Errors: kInterrupted for Ctrl-C, and for Ctrl-D or the end of input in an empty line; kIo.
[[nodiscard]] Result<Secret> ask_terminal(const base::UniqueFd& terminal,
                                          const std::string& prompt);

/// Makes the terminal of a waiting ask_terminal() show typed text again. Does nothing if none
/// waits. Thread-safe, and safe in a handler of a signal.
void show_typed_text();

}  // namespace varve::control
