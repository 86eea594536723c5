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
  bool silent = false;  ///< -q: nothing about what was deleted.
};

/// Returns true if a deletion prints nothing about its success. A forecast is what was asked for.
[[nodiscard]] inline bool is_silent(const Context& context, bool dry_run, bool json) {
  return context.quiet && !dry_run && !json;
}

/// Prints one version that was, or would be, deleted.
void print_deleted(const VersionInfo& version, const DeletionFormat& format);

/// Prints an open version that was, or would be, dropped, with its size.
void print_discarded(const VersionInfo& version, const DeletionFormat& format);

/// Prints the space that the deletion frees, or would free, in one series.
void print_deletion(const SeriesInfo& series, const DeletionForecast& forecast,
                    const DeletionFormat& format);

/// Reports the versions that the deletion left in place, as JSON lines or on stderr.
void print_held(const SeriesInfo& series, const DeletionForecast& forecast,
                const DeletionFormat& format);

}  // namespace varve::cli
