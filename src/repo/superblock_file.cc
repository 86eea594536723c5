// SPDX-License-Identifier: Apache-2.0
#include "repo/superblock_file.h"

#include <chrono>
#include <thread>

#include "base/coding.h"
#include "ingest/parameters.h"
#include "maintain/superblock_place.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"

namespace varve::repo {

std::optional<std::string> fault_of_copy(io::FileSystem& files, const std::string& directory,
                                         const format::Superblock& superblock) {
  if (!superblock.encryption) return std::nullopt;
  // A writer may be between the writes of the two files. Each try reads both files again.
  constexpr int kTriesMax = 20;
  constexpr std::chrono::milliseconds kWait(20);
  const store::RepositoryPaths paths(directory);
  for (int tries = 1;; ++tries) {
    const auto present = files.read_file(paths.superblock(), format::kSuperblockBytesMax);
    const auto copy = maintain::read_superblock_copy(files, directory);
    if (present && copy && *present == copy->text) return std::nullopt;
    if (tries < kTriesMax) {
      std::this_thread::sleep_for(kWait);
    } else if (!copy) {
      return copy.error().message();
    } else if (!maintain::are_of_one_repository(copy->superblock, superblock)) {
      return "it is the copy of another repository's superblock";
    } else {
      return "it differs from varve.repo; if a change of the keys was interrupted, the next "
             "command "
             "that writes to the repository writes it again";
    }
  }
}

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

bool SuperblockFile::needs_marks() const {
  const std::lock_guard lock(mutex_);
  return superblock_.needs_marks;
}

bool SuperblockFile::needs_delta() const {
  const std::lock_guard lock(mutex_);
  return superblock_.needs_delta;
}

bool SuperblockFile::needs_label_parts() const {
  const std::lock_guard lock(mutex_);
  return superblock_.needs_label_parts;
}

format::KeyLines SuperblockFile::key_lines() const {
  const std::lock_guard lock(mutex_);
  return superblock_.encryption.value_or(format::KeyLines());
}

Result<void> SuperblockFile::set_key_lines(format::KeyLines lines) {
  const std::lock_guard lock(mutex_);
  format::Superblock changed = superblock_;
  changed.encryption = std::move(lines);
  return write(std::move(changed));
}

Result<void> SuperblockFile::read_again() {
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files_, directory_));
  VARVE_TRY_ASSIGN(auto present, ingest::read_superblock(text));
  VARVE_TRY(format::authenticate_superblock(text, *keys_));
  const std::lock_guard lock(mutex_);
  superblock_ = std::move(present);
  return {};
}

std::optional<std::string> SuperblockFile::fault_of_copy() const {
  const std::lock_guard lock(mutex_);
  return repo::fault_of_copy(files_, directory_, superblock_);
}

Result<void> SuperblockFile::complete_copy() {
  const std::lock_guard lock(mutex_);
  const auto text = format::encode_superblock(superblock_, keys_.get());
  const auto copy =
      files_.read_file(store::RepositoryPaths(directory_).keys(), format::kSuperblockBytesMax);
  if (copy && *copy == text) return {};
  return files_.write_file_atomically(directory_, "varve.keys", base::as_bytes(text));
}

Result<void> SuperblockFile::write(format::Superblock changed) {
  // On failure after the rename, the change may be on disk.
  VARVE_TRY(store::write_superblock(files_, directory_, changed, keys_.get()));
  superblock_ = std::move(changed);
  return {};
}

Result<void> SuperblockFile::require(bool format::Superblock::*feature) {
  const std::lock_guard lock(mutex_);
  if (superblock_.*feature) return {};
  format::Superblock changed = superblock_;
  changed.*feature = true;
  return write(std::move(changed));  // An unneeded name after a failure is harmless.
}

}  // namespace varve::repo
