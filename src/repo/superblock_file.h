// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "format/superblock.h"
#include "io/file_system.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::repo {

/// The file `varve.repo` of an open repository. Only the names of required features change.
/// Thread-safe.
class SuperblockFile {
 public:
  /// `superblock` is the content of the file in the folder `directory`.
  /// Lifetime: `files` outlives the object.
  SuperblockFile(io::FileSystem& files, std::string directory, format::Superblock superblock)
      : files_(files), directory_(std::move(directory)), superblock_(std::move(superblock)) {}

  [[nodiscard]] const RepositoryParameters& parameters() const { return superblock_.parameters; }
  [[nodiscard]] const std::string& repository_id() const { return superblock_.repository_id; }
  /// Returns the present text of the file.
  [[nodiscard]] std::string text() const;
  /// Returns true if the file names the feature `pool`.
  [[nodiscard]] bool needs_pool() const;
  /// Adds the feature `pool`, unless the file names it, and makes that durable. The caller holds
  /// the repository's lock, and has voided the note of a settled repository.
  [[nodiscard]] Result<void> require_pool() { return require(&format::Superblock::needs_pool); }
  /// Do the same for the feature `pool-aliases`.
  [[nodiscard]] bool needs_aliases() const;
  [[nodiscard]] Result<void> require_aliases() {
    return require(&format::Superblock::needs_aliases);
  }

 private:
  [[nodiscard]] Result<void> require(bool format::Superblock::*feature);

  io::FileSystem& files_;
  const std::string directory_;
  mutable std::mutex mutex_;  // Guards the needs of superblock_; the rest never changes.
  format::Superblock superblock_;
};

}  // namespace varve::repo
