// SPDX-License-Identifier: Apache-2.0
// Options for the keys of encrypted repositories.
#pragma once

#include <string>

#include "cli/options.h"
#include "control/key_source.h"
#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::cli {

/// Adds the options shared by all commands: --passphrase-file, --key-file and --key-command.
void add_key_options(CommandLine& line, control::KeyPlace& place);
/// Adds the options for a new key of the repository, such as --new-key-file.
void add_new_key_options(Command& command, control::KeyPlace& place);

/// Adds --key-cost, for parse_key_cost().
Option add_key_cost_option(Command& command, std::string& cost);
/// Returns the cost of a new key from `place`. `cost` is the value of --key-cost, or empty for the
/// default cost.
/// Errors: kUsage for a cost that is malformed, not allowed, or given for a key without a cost.
[[nodiscard]] Result<PassphraseCost> parse_key_cost(const std::string& cost,
                                                    const control::KeyPlace& place);

/// Adds the options for the key of a second repository, such as --target-key-file.
void add_target_key_options(Command& command, control::KeyPlace& place);

/// Checks that the command line names at most one place. `prefix` begins the names of the options,
/// for example "new-".
/// Errors: kUsage.
[[nodiscard]] Result<void> check_key_options(const control::KeyPlace& place,
                                             const std::string& prefix = {});

/// Puts the command line's place of the key into the environment, for all later openings of the
/// repository. Removes any other place. Does nothing for an empty place.
void put_key_into_environment(const control::KeyPlace& place);

}  // namespace varve::cli
