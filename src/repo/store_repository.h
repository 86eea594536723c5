// SPDX-License-Identifier: Apache-2.0
// The functions of varve/replication.h with another access to object stores.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "remote/bucket_hooks.h"
#include "varve/options.h"
#include "varve/repair.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::repo {

[[nodiscard]] Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                                           const RepositoryParameters& parameters,
                                           const CreateOptions& options,
                                           const remote::BucketHooks& hooks,
                                           const ObjectLock& lock = {});
[[nodiscard]] Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                                           const OpenOptions& options,
                                           const remote::BucketHooks& hooks,
                                           AttachRole role = AttachRole::kReads);

[[nodiscard]] Result<StoreRebuild> rebuild_from_store(const StorePlace& place,
                                                      const std::string& folder,
                                                      const OpenOptions& options,
                                                      const remote::BucketHooks& hooks,
                                                      AttachRole role);

[[nodiscard]] Result<ReclaimReport> reclaim_store(const std::string& folder,
                                                  const OpenOptions& options,
                                                  std::int64_t wait_seconds,
                                                  const remote::BucketHooks& hooks);

/// Plans a repair as Repair::plan().
[[nodiscard]] Result<std::unique_ptr<Repair>> plan_repair(
    const std::string& folder, const RepairOptions& options, bool scan_only,
    const std::function<void(const CheckProgress&)>& progress, const remote::BucketHooks& hooks);

}  // namespace varve::repo
