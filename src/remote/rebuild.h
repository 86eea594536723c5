// SPDX-License-Identifier: Apache-2.0
// Rebuilds the catalog of a repository from the objects of the store. docs/decisions/165.
#pragma once

#include <string>

#include "io/file_system.h"
#include "remote/bucket_hooks.h"
#include "remote/replica_state.h"
#include "remote/store_place.h"
#include "varve/options.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// The repository to rebuild, and the folder to make.
struct RebuildRequest {
  StorePlace place{};
  std::string folder{};
  AttachRole role = AttachRole::kReads;
  ReadSuperblock read_superblock{};
};

/// Counts the objects that a rebuild reads, as varve::survey_store().
[[nodiscard]] Result<StoreSurvey> survey(const RebuildRequest& request, const OpenOptions& options,
                                         const BucketHooks& hooks);
/// Rebuilds as varve::rebuild_from_store().
[[nodiscard]] Result<StoreRebuild> rebuild(const RebuildRequest& request,
                                           const OpenOptions& options, const BucketHooks& hooks);

/// Returns whether a folder shows a rebuilt state without a head.
[[nodiscard]] Result<bool> is_rebuilt_state(const ReplicaState& state);

}  // namespace varve::remote
