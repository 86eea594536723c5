// SPDX-License-Identifier: Apache-2.0
// Secrets from commands and open files.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::control {

/// Reads to the end of a file or pipe, without a copy in the ordinary heap. `name` is the input's
/// name in messages.
/// Errors: kInvalid if the input has Secret::kBytesMax bytes or more; the errors of read(2).
[[nodiscard]] Result<Secret> read_to_end(int fd, const std::string& name);

/// Runs a shell command and returns the command's output. `name` is the command's name in messages.
/// Ends the command after `limit`, if given.
/// Errors: kIo if the command cannot be run or exits with a code other than 0; kUnavailable after
/// the limit; the errors of read_to_end().
[[nodiscard]] Result<Secret> output_of_command(
    const std::string& command, const std::string& name,
    std::optional<std::chrono::milliseconds> limit = std::nullopt);

}  // namespace varve::control
