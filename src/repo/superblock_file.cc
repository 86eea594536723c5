// SPDX-License-Identifier: Apache-2.0
#include "repo/superblock_file.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "base/coding.h"
#include "ingest/parameters.h"
#include "io/posix_file_system.h"
#include "maintain/superblock_place.h"
#include "store/repository_paths.h"

namespace varve::repo {

namespace {

Error no_repository(const std::string& path) {
  return {ErrorCode::kNoRepository,
          path + " is not a Varve repository (it has no varve.repo); create one with `varve init`"};
}

bool is_absent(const Error& error) {
  return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kNotDirectory;
}

}  // namespace

Result<std::unique_ptr<io::FileSystem>> open_folder(const std::string& path, bool trust_owner) {
  auto opened = io::open_root(path, {.trust_owner = trust_owner});
  if (!opened && is_absent(opened.error())) return no_repository(path);
  return opened;
}

Result<std::string> read_superblock_text(io::FileSystem& files, const std::string& directory) {
  const store::RepositoryPaths paths(directory);
  auto text = files.read_file(paths.superblock(), format::kSuperblockBytesMax);
  if (text || !is_absent(text.error())) return text;
  const auto has_copy = files.exists(paths.keys());
  if (!has_copy || !*has_copy) return no_repository(directory);
  return Error(ErrorCode::kCorrupt,
               fmt::format("{} is missing, but {}, its copy, is there: the folder is an encrypted "
                           "repository. `varve repair` writes the file again, as `cp -p {} {}` "
                           "does; do not create a repository here",
                           paths.superblock(), paths.keys(), paths.keys(), paths.superblock()));
}

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

Result<void> write_superblock(io::FileSystem& files, const std::string& directory,
                              const format::Superblock& superblock, const crypto::KeyRing* keys) {
  const auto text = format::encode_superblock(superblock, keys);
  // After a crash, the next writer completes the copy.
  VARVE_TRY(files.write_file_atomically(directory, "varve.repo", base::as_bytes(text)));
  return write_copy(files, directory, superblock, keys);
}

Result<void> adopt_superblock(io::FileSystem& files, const std::string& directory,
                              const std::string& text, bool has_keys) {
  VARVE_TRY_ASSIGN(const auto present, read_superblock_text(files, directory));
  if (present == text) return {};
  const auto bytes = base::as_bytes(text);
  VARVE_TRY(files.write_file_atomically(directory, "varve.repo", bytes));
  if (!has_keys) return {};
  return files.write_file_atomically(directory, "varve.keys", bytes);
}

Result<void> write_copy(io::FileSystem& files, const std::string& directory,
                        const format::Superblock& superblock, const crypto::KeyRing* keys) {
  if (keys == nullptr) return {};
  const auto text = format::encode_superblock(superblock, keys);
  return files.write_file_atomically(directory, "varve.keys", base::as_bytes(text));
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
  VARVE_TRY_ASSIGN(const auto text, read_superblock_text(files_, directory_));
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
  VARVE_TRY(write_superblock(files_, directory_, changed, keys_.get()));
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
