// SPDX-License-Identifier: Apache-2.0
// Checking all data a part at a time: `varve scrub` and `varve check --resume`.
#pragma once

#include <string>

#include "cli/command.h"

namespace varve::cli {

struct PartOptions {
  std::string repository;  ///< As it was given; may be empty.
  std::string rate;        ///< Bytes a second, with a unit; empty: no bound.
  std::string time;        ///< After which to stop; empty: at the end.
  bool restart = false;    ///< Begin at the start.
  bool json = false;
  bool progress = false;
};

/// Goes on where the last one stopped, until the end, the time or a signal; the exit code.
[[nodiscard]] int check_in_parts(PartOptions options, const Context& context);

}  // namespace varve::cli
