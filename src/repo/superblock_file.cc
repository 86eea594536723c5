// SPDX-License-Identifier: Apache-2.0
#include "repo/superblock_file.h"

#include "base/coding.h"

namespace varve::repo {

std::string SuperblockFile::text() const {
  const std::lock_guard lock(mutex_);
  return format::encode_superblock(superblock_);
}

bool SuperblockFile::needs_pool() const {
  const std::lock_guard lock(mutex_);
  return superblock_.needs_pool;
}

bool SuperblockFile::needs_aliases() const {
  const std::lock_guard lock(mutex_);
  return superblock_.needs_aliases;
}

Result<void> SuperblockFile::require(bool format::Superblock::*feature) {
  const std::lock_guard lock(mutex_);
  if (superblock_.*feature) return {};
  format::Superblock changed = superblock_;
  changed.*feature = true;
  // If this fails after the rename, the name may be on disk: an unneeded name is harmless.
  VARVE_TRY(files_.write_file_atomically(directory_, "varve.repo",
                                         base::as_bytes(format::encode_superblock(changed))));
  superblock_.*feature = true;
  return {};
}

}  // namespace varve::repo
