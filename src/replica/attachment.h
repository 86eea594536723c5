// SPDX-License-Identifier: Apache-2.0
// A folder that reads a repository in an object store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "replica/commit_log.h"
#include "replica/replica_state.h"
#include "varve/result.h"

namespace varve::replica {

/// Returns the text of the newest head of a repository. `known` is the text of a head that the
/// caller has, or empty. One request suffices if that is the newest: a head never changes.
/// Errors: kNoRepository without a head; kCorrupt; those of the bucket.
[[nodiscard]] Result<std::string> newest_head(CommitLog& log, const std::string& known = {});

/// The open parts of an attached folder.
struct AttachedFolder {
  io::FileSystem* files = nullptr;  ///< Shows files as they are on disk.
  std::string root{};
  ReplicaState* state = nullptr;
  const meta::Env* catalog = nullptr;
  /// Called once the map has the objects of the new head, before the catalog needs them. May be
  /// empty.
  std::function<Result<void>()> objects_added{};
};
/// Does as advance_to() in a folder that this process has open for reading.
[[nodiscard]] Result<bool> advance(bucket::Bucket& bucket, const AttachedFolder& folder,
                                   const std::string& head);

/// Brings the catalog, the map of objects and the small files in the folder at `root` to a head.
/// Readers see the old or the new catalog at every moment, also after a crash; another call
/// completes what a crash left. Returns false if the folder has this head already.
/// `files` shows files as they are on disk. The caller holds the repository's lock.
/// Errors: those of the bucket and the disk; kCorrupt for objects that do not fit the head.
[[nodiscard]] Result<bool> advance_to(bucket::Bucket& bucket, io::FileSystem& files,
                                      const std::string& root, const std::string& head);

}  // namespace varve::replica
