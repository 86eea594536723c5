// SPDX-License-Identifier: Apache-2.0
// The files of a repository that an attached folder leaves in the object store, because no reader
// needs the files: manifests and parity. docs/decisions/162.
#pragma once

#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/replica_state.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns whether an attached folder leaves a file in the store.
[[nodiscard]] bool is_left_in_store(std::string_view path);

/// Downloads all left files of the newest head, before the folder begins to write. Keeps local
/// files with the head's content, so a later call continues an interrupted call. Removes local
/// manifests and parity unknown to the head. Logs files that the store has lost with the copies,
/// and leaves these files out: a writer makes both kinds again. Errors: errors of the bucket and
/// the disk.
[[nodiscard]] Result<void> fetch_left_files(bucket::Bucket& bucket, io::FileSystem& files,
                                            const std::string& root, const ReplicaState& state);

}  // namespace varve::remote
