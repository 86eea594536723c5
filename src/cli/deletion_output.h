// SPDX-License-Identifier: Apache-2.0
// What `varve rm` and `varve prune` print.
#pragma once

#include <string>

#include "varve/repository.h"

namespace CLI {
class App;
}

namespace varve::cli {

/// --force and --force-clock, as `varve rm` and `varve prune` have them. `more` ends the help of
/// --force.
void add_force_flags(CLI::App& command, bool& force, bool& force_clock,
                     const std::string& more = {});

struct DeletionFormat {
  bool dry_run = false;
  bool json = false;
  bool exact = false;
};

/// One version that went, or would.
void print_deleted(const VersionInfo& version, const DeletionFormat& format);

/// An open version that was dropped, or would be, with what it had.
void print_discarded(const VersionInfo& version, const DeletionFormat& format);

/// What came back, or would, of one series.
void print_deletion(const SeriesInfo& series, const DeletionForecast& forecast,
                    const DeletionFormat& format);

/// Reports the versions that the deletion left in place: as JSON lines, or on stderr.
void print_held(const SeriesInfo& series, const DeletionForecast& forecast,
                const DeletionFormat& format);

}  // namespace varve::cli
