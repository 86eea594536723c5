// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "transfer/source_clock.h"
#include "transfer/source_states.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::transfer {

/// Makes an open version equal to the source, without reading unchanged files.
/// Lifetime: everything outlives the import.
struct SourceTracking {
  /// The states of the version's base; null to read every file.
  SourceStates* previous = nullptr;
  /// Gets the states of the version.
  SourceStatesWriter* next = nullptr;
  SourceClock* clock = nullptr;
};

/// Does the work of varve::store_tree(). With `tracking`, also removes the entries missing in the
/// source, and keeps unchanged files of the base.
[[nodiscard]] Result<TransferReport> import_tree(
    VersionWriter& version, const std::string& directory,
    const std::function<bool(const TransferProgress&)>& progress, const StoreOptions& options,
    const SourceTracking* tracking);

}  // namespace varve::transfer
