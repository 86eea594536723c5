// SPDX-License-Identifier: Apache-2.0
// Makes an attached folder the writer's folder. docs/decisions/094-takeover.md.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "remote/bucket_hooks.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::remote {

struct Takeover {
  std::string folder{};
  std::string superblock_text{};
  format::Superblock superblock{};
  std::shared_ptr<const crypto::KeyRing> keys{};  ///< Null in a plain repository.
  /// The new head has a greater number: that of the newest listed head, or more if heads are lost.
  std::uint64_t heads_passed = 0;
  /// Catalog objects that interrupted takeovers of this folder left in the store.
  std::set<std::string> left_objects{};
  std::string head{};  ///< The text of the head that the folder has; for promote().
  /// The folder is attached until the end: note_begun_takeover() precedes the first change, and the
  /// new head has a base if the folder's notes say so.
  bool notes_begin = false;
};

/// Prepares the catalog of a folder for writing, after advance_to() brought the folder to the
/// newest head, and creates the next head. From then on no other folder can write. `files` shows
/// the files on disk. The caller holds the repository's lock. Errors: kLocked if another folder has
/// created a head meanwhile; kUnsupported if the repository locks objects and the key cannot lock;
/// errors of the disk and the store.
[[nodiscard]] Result<void> take_over_writing(bucket::LockingBucket& bucket, io::FileSystem& files,
                                             const Takeover& takeover, const OpenOptions& options,
                                             const BucketHooks& hooks);

/// Compares the catalog of an attached encrypted repository with the local machine's memory: an
/// older state put back into the store is refused before anything is written to the store.
/// Remembers the older state instead if the options accept older states.
/// Errors: kCorrupt for an older state; errors of the disk.
[[nodiscard]] Result<void> compare_attached(const std::string& folder, const std::string& id,
                                            const std::shared_ptr<const crypto::KeyRing>& keys,
                                            const OpenOptions& options);

/// Removes the catalog and the state of a folder whose attaching was interrupted.
[[nodiscard]] Result<void> forget_catalog(io::FileSystem& files, const std::string& folder);

}  // namespace varve::remote
