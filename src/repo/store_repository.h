// SPDX-License-Identifier: Apache-2.0
// The functions of varve/replication.h with another access to object stores.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/file_system.h"
#include "repo/bucket_side.h"
#include "varve/options.h"
#include "varve/repair.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::repo {

[[nodiscard]] Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                                           const RepositoryParameters& parameters,
                                           const CreateOptions& options, const BucketHooks& hooks,
                                           const ObjectLock& lock = {});
[[nodiscard]] Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                                           const OpenOptions& options, const BucketHooks& hooks,
                                           AttachRole role = AttachRole::kReads);

[[nodiscard]] Result<ReclaimReport> reclaim_store(const std::string& folder,
                                                  const OpenOptions& options,
                                                  std::int64_t wait_seconds,
                                                  const BucketHooks& hooks);

[[nodiscard]] Result<StoreCheck> check_objects(const std::string& folder,
                                               const OpenOptions& options, const BucketHooks& hooks,
                                               bool reads_objects = false);

/// The folder of a repository, for a check or a repair.
struct WholeFolder {
  std::unique_ptr<io::FileSystem> files;  ///< The folder on the disk.
  /// Reads the evicted segments and volumes of the writer's folder from the object store. Empty
  /// without an object store.
  store::StoreOpener open_store{};
};
/// Opens the folder of a repository.
/// Errors: kReadOnly for an attached folder; as for reading the folder.
[[nodiscard]] Result<WholeFolder> open_whole_folder(const std::string& folder,
                                                    const OpenOptions& options,
                                                    const BucketHooks& hooks = {});
/// Plans a repair as Repair::plan().
[[nodiscard]] Result<std::unique_ptr<Repair>> plan_repair(
    const std::string& folder, const RepairOptions& options, bool scan_only,
    const std::function<void(const CheckProgress&)>& progress, const BucketHooks& hooks);

/// Returns success unless the folder is attached: an attached folder has no segments, so it cannot
/// be repaired, or checked without the store.
/// Errors: kReadOnly for an attached folder; as for reading the folder.
[[nodiscard]] Result<void> refuse_attached(const std::string& folder, bool trust_owner);

}  // namespace varve::repo
