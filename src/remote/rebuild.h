// SPDX-License-Identifier: Apache-2.0
// Rebuilds a repository's catalog from the objects of its store. docs/decisions/165.
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

/// Returns success unless a rebuild was interrupted in the folder. Errors: kExists with advice.
[[nodiscard]] Result<void> refuse_unfinished_rebuild(io::FileSystem& files,
                                                     const std::string& folder);
/// Returns whether a folder shows a rebuilt state, which no head of the store has.
[[nodiscard]] Result<bool> is_rebuilt_state(const ReplicaState& state);

}  // namespace varve::remote
