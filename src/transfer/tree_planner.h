// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "transfer/source_clock.h"
#include "transfer/source_states.h"
#include "varve/browse.h"
#include "varve/result.h"
#include "varve/store.h"

namespace varve::transfer {

/// A sealed version to compare a source with. Lifetime: everything outlives the planning.
struct PlanBase {
  VersionReader* version = nullptr;  ///< Null: every entry is new.
  SourceStates* states = nullptr;    ///< Null: every file would be read.
  SourceClock* clock = nullptr;
};

/// Does the work of varve::plan_store(), for a single directory.
[[nodiscard]] Result<StorePlan> plan_tree(
    const std::string& directory, const StoreOptions& options, const PlanBase& base,
    const std::function<void(StoreChange change, const std::string& path)>& changed,
    const std::function<bool(const TransferProgress&)>& progress);

}  // namespace varve::transfer
