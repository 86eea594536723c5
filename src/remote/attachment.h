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
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "varve/result.h"

namespace varve::remote {

/// The open parts of an attached folder.
struct AttachedFolder {
  io::FileSystem* files = nullptr;  ///< Shows files as they are on disk.
  std::string root{};
  ReplicaState* state = nullptr;
  const meta::Env* catalog = nullptr;
  /// Called once the map contains the objects of the new head, and before the catalog needs the
  /// objects. May be empty.
  std::function<Result<void>()> objects_added{};
  /// True to log the loss of a catalog object of the new head, and to keep the known head.
  bool stays_on_loss = false;
};
/// Writes the superblock of the head that the folder has, unless it is there: a process may have
/// been killed after the advance to the head. Does nothing in a folder that is being attached,
/// which has no superblock. Errors: kUnsupported for a superblock of a newer format; kCorrupt;
/// errors of the disk.
[[nodiscard]] Result<void> adopt_superblock(io::FileSystem& files, const std::string& root,
                                            const Head& head);

/// Advances a folder that this process has open for reading, as advance_to() does.
[[nodiscard]] Result<bool> advance(bucket::Bucket& bucket, const AttachedFolder& folder,
                                   const std::string& head);

/// Brings the catalog, the map of objects and the small files in the folder at `root` to a head.
/// Readers see the old or the new catalog at every moment, also after a crash. After a crash,
/// another call completes the interrupted work. Leaves out, and logs, small files that the store
/// has lost together with the copies. `files` shows files as they are on disk. The caller holds the
/// repository's lock.
/// Returns false if the folder already has the head, or keeps an older head because the store has
/// lost a catalog object of the new head; the loss is logged.
/// Writes the head's superblock last, as adopt_superblock() does.
/// Errors: kUnsupported for a head of a newer format, and nothing is changed; errors of the bucket
/// and the disk; kCorrupt and kNotFound for objects that do not fit
/// the head, if the folder has no head yet.
[[nodiscard]] Result<bool> advance_to(bucket::Bucket& bucket, io::FileSystem& files,
                                      const std::string& root, const std::string& head);

}  // namespace varve::remote
