// SPDX-License-Identifier: Apache-2.0
// The note of a folder that is attached for reading and begins to take over the writing. Until the
// role changes, the folder is still attached. docs/decisions/164.
#pragma once

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "remote/replica_state.h"
#include "varve/result.h"

namespace varve::remote {

/// Durably notes that the folder's catalog and labels may differ from the newest known head, whose
/// catalog is in `replica/catalog`.
[[nodiscard]] Result<void> note_begun_takeover(ReplicaState& state);
/// Returns whether a takeover has begun in the folder.
[[nodiscard]] Result<bool> has_begun_takeover(const ReplicaState& state);
/// Removes the note, because the folder has become the writer's folder.
[[nodiscard]] Result<void> end_takeover(ReplicaState& state);

/// Undoes a takeover that was interrupted before the role changed: the catalog is again the one of
/// the newest known head, and the labels are those of the store. Does nothing without the note.
/// May be repeated after any error or crash. The caller holds the repository's lock. Errors: errors
/// of the bucket and the disk.
[[nodiscard]] Result<void> undo_takeover(bucket::Bucket& bucket, io::FileSystem& files,
                                         const std::string& root, ReplicaState& state,
                                         const meta::Env& catalog);

}  // namespace varve::remote
