// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "transfer/source_clock.h"
#include "transfer/source_states.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::transfer {

/// Makes an open version equal to the source, without reading the files that did not change.
/// Lifetime: everything outlives the import.
struct SourceTracking {
  /// The states of the version's base; null to read every file.
  SourceStates* previous = nullptr;
  /// Gets the states of this version.
  SourceStatesWriter* next = nullptr;
  SourceClock* clock = nullptr;
};

/// Does what varve::store_tree() does. With `tracking`, it also removes the entries that the source
/// does not have, and keeps the files of the base that did not change.
[[nodiscard]] Result<TransferReport> import_tree(
    VersionWriter& version, const std::string& directory,
    const std::function<bool(const TransferProgress&)>& progress, const StoreOptions& options,
    const SourceTracking* tracking);

}  // namespace varve::transfer
