// SPDX-License-Identifier: Apache-2.0
// The options that name the key of an encrypted repository.
#pragma once

#include <string>

#include "cli/options.h"
#include "control/key_source.h"
#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::cli {

/// Adds the options that all commands share: --passphrase-file, --key-file and --key-command.
void add_key_options(CommandLine& line, control::KeyPlace& place);
/// Adds the options for a key that the repository gets, such as --new-key-file.
void add_new_key_options(Command& command, control::KeyPlace& place);

/// Adds --key-cost, for parse_key_cost().
Option add_key_cost_option(Command& command, std::string& cost);
/// Returns the cost of a new key from this place. `cost` is the value of --key-cost, or empty for
/// the default cost.
/// Errors: kUsage for a cost that is malformed or not allowed, or that such a key does not have.
[[nodiscard]] Result<PassphraseCost> parse_key_cost(const std::string& cost,
                                                    const control::KeyPlace& place);

/// Adds the options for the key of a second repository, such as --target-key-file.
void add_target_key_options(Command& command, control::KeyPlace& place);

/// Checks that the command line names one place at most. `prefix` begins the names of the options,
/// such as "new-".
/// Errors: kUsage.
[[nodiscard]] Result<void> check_key_options(const control::KeyPlace& place,
                                             const std::string& prefix = {});

/// Puts the place that the command line names into the environment, and removes any other one, for
/// all that opens the repository. Does nothing for an empty place.
void put_key_into_environment(const control::KeyPlace& place);

}  // namespace varve::cli
