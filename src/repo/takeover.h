// SPDX-License-Identifier: Apache-2.0
// Makes a folder that was attached the one that writes. docs/decisions/94-takeover.md.
#pragma once

#include <memory>
#include <string>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "repo/bucket_side.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::repo {

struct Takeover {
  std::string folder{};
  std::string superblock_text{};
  format::Superblock superblock{};
  std::shared_ptr<const crypto::KeyRing> keys{};  ///< Null in a plain repository.
};

/// Prepares the catalog of a folder, which advance_to() has brought to the newest head, for
/// writing, and creates the next head. From then on no other folder can. `files` shows files as
/// they are on disk. The caller holds the repository's lock. Errors: kLocked if another folder has
/// created a head since; kUnsupported if the repository locks its objects and the key cannot; those
/// of the disk and the store.
[[nodiscard]] Result<void> take_over_writing(bucket::LockingBucket& bucket, io::FileSystem& files,
                                             const Takeover& takeover, const OpenOptions& options,
                                             const BucketHooks& hooks);

/// Compares the catalog of an encrypted repository that was attached in a folder with what this
/// machine remembers: an older state that was put back into the store is refused before anything is
/// written there. Remembers it instead if the options accept it.
/// Errors: kCorrupt for an older state; those of the disk.
[[nodiscard]] Result<void> compare_attached(const std::string& folder, const std::string& id,
                                            const std::shared_ptr<const crypto::KeyRing>& keys,
                                            const OpenOptions& options);

/// Removes the catalog and the state of a folder whose attaching was interrupted.
[[nodiscard]] Result<void> forget_catalog(io::FileSystem& files, const std::string& folder);

}  // namespace varve::repo
