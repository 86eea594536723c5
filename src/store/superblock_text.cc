// SPDX-License-Identifier: Apache-2.0
#include "store/superblock_text.h"

#include <fmt/core.h>

#include "base/coding.h"
#include "io/posix_file_system.h"
#include "store/repository_paths.h"

namespace varve::store {

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
  const RepositoryPaths paths(directory);
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

Result<void> write_superblock(io::FileSystem& files, const std::string& directory,
                              const format::Superblock& superblock, const crypto::KeyRing* keys) {
  const auto text = format::encode_superblock(superblock, keys);
  // After a crash, the next writer completes the copy.
  VARVE_TRY(files.write_file_atomically(directory, "varve.repo", base::as_bytes(text)));
  return write_superblock_copy(files, directory, superblock, keys);
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

Result<void> write_superblock_copy(io::FileSystem& files, const std::string& directory,
                                   const format::Superblock& superblock,
                                   const crypto::KeyRing* keys) {
  if (keys == nullptr) return {};
  const auto text = format::encode_superblock(superblock, keys);
  return files.write_file_atomically(directory, "varve.keys", base::as_bytes(text));
}

}  // namespace varve::store
