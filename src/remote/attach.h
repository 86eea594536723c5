// SPDX-License-Identifier: Apache-2.0
// Attaches a folder to a repository in an object store.
#pragma once

#include <string>

#include "remote/bucket_hooks.h"
#include "remote/store_place.h"
#include "varve/options.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// Attaches a folder as varve::attach_to_store().
[[nodiscard]] Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                                           const OpenOptions& options, const BucketHooks& hooks,
                                           AttachRole role, const ReadSuperblock& read_superblock);

}  // namespace varve::remote
