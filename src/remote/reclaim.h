// SPDX-License-Identifier: Apache-2.0
// Removes objects needed by no head, with the key of a keeper.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "remote/bucket_hooks.h"
#include "varve/object_lock.h"
#include "varve/options.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// Reclaims as RemoteFolder::reclaim(). `refresh` brings the folder to the newest head, checks the
/// head, and returns the repository's setting of locks.
[[nodiscard]] Result<ReclaimReport> reclaim_store(
    const std::string& folder, const OpenOptions& options, std::int64_t wait_seconds,
    const BucketHooks& hooks, const std::function<Result<ObjectLock>()>& refresh);

}  // namespace varve::remote
