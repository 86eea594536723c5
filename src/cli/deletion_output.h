// SPDX-License-Identifier: Apache-2.0
// The output of `varve rm` and `varve prune`.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "varve/retention.h"

namespace varve::cli {

/// Adds --force and --force-clock for `varve rm` and `varve prune`. Appends `more` to the help of
/// --force.
void add_force_flags(Command& command, bool& force, bool& force_clock,
                     const std::string& more = {});

struct DeletionFormat {
  bool dry_run = false;
  bool json = false;
  bool exact = false;
  bool silent = false;  ///< -q: no list of deleted versions.
};

/// Returns true if a deletion prints nothing about success. A forecast is always printed.
[[nodiscard]] inline bool is_silent(const Context& context, bool dry_run, bool json) {
  return context.quiet && !dry_run && !json;
}

/// Prints a deleted version; in a dry run, a version to delete.
void print_deleted(const VersionInfo& version, const DeletionFormat& format);

/// Prints a dropped open version with its size; in a dry run, a version to drop.
void print_discarded(const VersionInfo& version, const DeletionFormat& format);

/// Prints the space freed by the deletion, or in a dry run the forecast, in one series.
void print_deletion(const SeriesInfo& series, const DeletionForecast& forecast,
                    const DeletionFormat& format);

/// Reports the versions left in place by the deletion, as JSON lines or on stderr.
void print_held(const SeriesInfo& series, const DeletionForecast& forecast,
                const DeletionFormat& format);

}  // namespace varve::cli
