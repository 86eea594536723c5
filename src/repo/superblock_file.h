// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "format/superblock.h"
#include "io/file_system.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::repo {

/// Returns the fault of the copy `varve.keys` of an encrypted repository, or nullopt. Needs no key:
/// compares the copy with `varve.repo`, whose checksum was verified. Waits for at most half a
/// second, while a writer may be changing both files.
[[nodiscard]] std::optional<std::string> fault_of_copy(io::FileSystem& files,
                                                       const std::string& directory,
                                                       const format::Superblock& superblock);

/// The file `varve.repo` of an open repository. Only the names of required features and the key
/// slots change.
/// Thread-safe.
class SuperblockFile {
 public:
  /// `superblock`: the content of the file in the folder `directory`. `keys`: the repository's
  /// keys; null for a plain repository. Lifetime: `files` outlives the object.
  SuperblockFile(io::FileSystem& files, std::string directory, format::Superblock superblock,
                 std::shared_ptr<const crypto::KeyRing> keys)
      : files_(files),
        directory_(std::move(directory)),
        keys_(std::move(keys)),
        superblock_(std::move(superblock)) {}

  [[nodiscard]] const RepositoryParameters& parameters() const { return superblock_.parameters; }
  [[nodiscard]] const std::string& repository_id() const { return superblock_.repository_id; }
  /// Returns the present text for labels: the file's text without key slots.
  [[nodiscard]] std::string text() const;
  /// Returns true if the file names the feature `pool`.
  [[nodiscard]] bool needs_pool() const;
  /// Adds the feature `pool`, unless the file names `pool` already, and syncs the file. The caller
  /// holds the repository's lock, and has voided the note of a settled repository.
  [[nodiscard]] Result<void> require_pool() { return require(&format::Superblock::needs_pool); }
  /// Do the same for the feature `pool-aliases`.
  [[nodiscard]] bool needs_aliases() const;
  [[nodiscard]] Result<void> require_aliases() {
    return require(&format::Superblock::needs_aliases);
  }
  /// Do the same for the feature `marks`.
  [[nodiscard]] bool needs_marks() const;
  [[nodiscard]] Result<void> require_marks() { return require(&format::Superblock::needs_marks); }
  /// Do the same for the feature `delta`.
  [[nodiscard]] bool needs_delta() const;
  [[nodiscard]] Result<void> require_delta() { return require(&format::Superblock::needs_delta); }
  /// Do the same for the feature `label-parts`.
  [[nodiscard]] bool needs_label_parts() const;
  [[nodiscard]] Result<void> require_label_parts() {
    return require(&format::Superblock::needs_label_parts);
  }

  /// Returns the present lines of the keys. The repository is encrypted.
  [[nodiscard]] format::KeyLines key_lines() const;
  /// Writes the file with new key slots, and syncs the file.
  [[nodiscard]] Result<void> set_key_lines(format::KeyLines lines);
  /// Reads the key lines again, because another process writes the file.
  /// Errors: kCorrupt if a program without the keys has changed the file.
  [[nodiscard]] Result<void> read_again();
  /// Returns the fault of the copy `varve.keys`, or nullopt.
  [[nodiscard]] std::optional<std::string> fault_of_copy() const;
  /// Writes the copy `varve.keys` again if the copy differs from the file, as after a crash.
  [[nodiscard]] Result<void> complete_copy();

 private:
  [[nodiscard]] Result<void> write(format::Superblock changed);
  [[nodiscard]] Result<void> require(bool format::Superblock::*feature);

  io::FileSystem& files_;
  const std::string directory_;
  const std::shared_ptr<const crypto::KeyRing> keys_;
  mutable std::mutex mutex_;  // Guards the needs and key lines of superblock_; the rest is fixed.
  format::Superblock superblock_;
};

}  // namespace varve::repo
