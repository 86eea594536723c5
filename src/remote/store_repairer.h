// SPDX-License-Identifier: Apache-2.0
// Repairs the objects of a repository in an object store from the writer's folder.
#pragma once

#include <memory>
#include <string>

#include "remote/bucket_hooks.h"
#include "varve/options.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::remote {

/// Adds to the plan `inner` the missing and changed objects of the newest state, as far as the
/// folder can upload the objects again. Returns `inner` without such objects, if the folder is
/// fenced, or, with a warning, if the store does not answer.
/// Executing puts the newest head and `varve.repo` back, and notes the uploads for the next
/// replication (docs/decisions/119). Errors: as for reading the folder.
[[nodiscard]] Result<std::unique_ptr<Repair>> with_store_repair(std::unique_ptr<Repair> inner,
                                                                const std::string& folder,
                                                                const OpenOptions& options,
                                                                const BucketHooks& hooks,
                                                                bool reads_all);

}  // namespace varve::remote
