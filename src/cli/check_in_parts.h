// SPDX-License-Identifier: Apache-2.0
// Checks all data in parts: `varve scrub` and `varve check --resume`.
#pragma once

#include <string>

#include "cli/command.h"

namespace varve::cli {

struct PartOptions {
  std::string repository;  ///< From the command line; may be empty.
  std::string rate;        ///< Bytes per second, with a unit; empty for no limit.
  std::string time;        ///< Time after which to stop; empty for no limit.
  bool restart = false;    ///< Begin at the start of the data.
  bool json = false;
  bool progress = false;
};

/// Checks from where the last run stopped, until the end of the data, the time limit or a signal.
/// Returns the exit code.
[[nodiscard]] int check_in_parts(PartOptions options, const Context& context);

}  // namespace varve::cli
