// SPDX-License-Identifier: Apache-2.0
// What `varve rm` and `varve prune` print.
#pragma once

#include "varve/repository.h"

namespace varve::cli {

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

}  // namespace varve::cli
