// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "remote/bucket_hooks.h"
#include "varve/options.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// Checks the objects of a folder's store as RemoteFolder::check().
[[nodiscard]] Result<StoreCheck> check_objects(const std::string& folder,
                                               const OpenOptions& options, const BucketHooks& hooks,
                                               bool reads_objects = false);

}  // namespace varve::remote
