// SPDX-License-Identifier: Apache-2.0
// Secrets from commands and open files.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::control {

/// Reads to the end of a file or pipe, without a copy in the ordinary heap. `name` is its name in
/// messages.
/// Errors: kInvalid if it has Secret::kBytesMax bytes or more; those of read(2).
[[nodiscard]] Result<Secret> read_to_end(int fd, const std::string& name);

/// Runs a command of the shell, and returns what it prints. `name` is its name in messages.
/// Ends the command after the limit, if there is one.
/// Errors: kIo if it cannot be run or does not end with 0; kUnavailable after the limit; those of
/// read_to_end().
[[nodiscard]] Result<Secret> output_of_command(
    const std::string& command, const std::string& name,
    std::optional<std::chrono::milliseconds> limit = std::nullopt);

}  // namespace varve::control
