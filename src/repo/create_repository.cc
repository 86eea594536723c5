// SPDX-License-Identifier: Apache-2.0
// Creates a repository. From its first file, varve.repo.tmp, to the last step, which renames that
// file to varve.repo, the folder is an unfinished creation: the next attempt begins again in it.
#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/coding.h"
#include "catalog/series_settings.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "io/posix_file_system.h"
#include "meta/env_files.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "varve/repository.h"

namespace varve {
namespace {

// Makes the repository's folder, for its owner only, and the folders above it with the modes of
// mkdir(1).
Result<void> make_folder(const std::string& path) {
  auto normal = std::filesystem::path(path).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();  // Drops the trailing slash of "a/b/".
  const auto parent = normal.parent_path();
  std::error_code failed;
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  if (failed) return io::error_from_errno(failed.value(), "cannot create " + parent.string());
  return io::make_posix_file_system()->make_directory(path);
}

std::string unfinished_name(const store::RepositoryPaths& paths) {
  return paths.superblock() + std::string(store::kTemporarySuffix);
}

Result<bool> is_empty(io::FileSystem& files, const std::string& path) {
  VARVE_TRY_ASSIGN(const auto names, files.list(path));
  return names.empty();
}

/// Returns true if an unfinished creation leaves such a file or folder, or if any file system does.
Result<bool> may_be_left(io::FileSystem& files, const store::RepositoryPaths& paths,
                         const std::string& name, bool unfinished) {
  const std::string path = paths.root() + "/" + name;
  if (name == "lost+found") return true;
  if (path == paths.lock()) {
    VARVE_TRY_ASSIGN(const std::uint64_t bytes, files.tree_bytes(path));
    return bytes == 0;
  }
  if (!unfinished) return false;
  if (path == unfinished_name(paths)) return true;
  if (path == paths.all_series() || path == paths.all_staging()) return is_empty(files, path);
  if (path != paths.catalog()) return false;
  VARVE_TRY_ASSIGN(const auto inside, files.list(path));
  return std::ranges::all_of(inside, [&](const std::string& file) {
    return store::known_name(store::FolderKind::kEnvironment, file).has_value();
  });
}

/// Checks that a repository may be created in a folder.
Result<void> check_folder(io::FileSystem& files, const store::RepositoryPaths& paths) {
  VARVE_TRY_ASSIGN(const bool exists, files.exists(paths.superblock()));
  if (exists) return Error(ErrorCode::kExists, paths.root() + " is a Varve repository already");
  VARVE_TRY_ASSIGN(const bool unfinished, files.exists(unfinished_name(paths)));
  VARVE_TRY_ASSIGN(const auto names, files.list(paths.root()));
  for (const auto& name : names) {
    const auto left = may_be_left(files, paths, name, unfinished);
    if (left && *left) continue;
    return Error(
        ErrorCode::kNotEmpty,
        paths.root() + " is not empty; choose an empty or a new folder for the repository");
  }
  return {};
}

/// Removes the catalog of an unfinished creation, which may end anywhere.
Result<void> remove_catalog(io::FileSystem& files, const store::RepositoryPaths& paths) {
  VARVE_TRY_ASSIGN(const bool exists, files.exists(paths.catalog()));
  if (!exists) return {};
  VARVE_TRY_ASSIGN(const auto names, files.list(paths.catalog()));
  for (const auto& name : names) VARVE_TRY(files.remove(paths.catalog() + "/" + name));
  return {};
}

}  // namespace

Result<void> Repository::create(const std::string& path, const RepositoryParameters& parameters,
                                bool trust_owner) {
  VARVE_TRY(ingest::check_parameters(parameters));
  VARVE_TRY(meta::check_system());
  VARVE_TRY(make_folder(path));
  VARVE_TRY_ASSIGN(const auto files, io::open_root(path, {.trust_owner = trust_owner}));
  const store::RepositoryPaths paths(path);
  // Looks before it locks, because the lock makes a file.
  VARVE_TRY(check_folder(*files, paths));
  const auto lock = files->lock(paths.lock());
  if (!lock && lock.error().code() == ErrorCode::kLocked) {
    return Error(ErrorCode::kLocked, "another process creates a repository in " + path);
  }
  if (!lock) return lock.error();
  VARVE_TRY(check_folder(*files, paths));

  format::Superblock superblock;
  superblock.parameters = parameters;
  superblock.needs_pool = catalog::needs_pool_feature({.placement = parameters.placement});
  std::array<unsigned char, 16> id{};
  if (RAND_bytes(id.data(), static_cast<int>(id.size())) != 1) {
    return Error(ErrorCode::kIo, "cannot get random numbers for the repository's id");
  }
  superblock.repository_id = fmt::format("{:02x}", fmt::join(id, ""));
  {
    VARVE_TRY_ASSIGN(const auto file,
                     files->open(unfinished_name(paths), io::OpenMode::kReadWrite));
    VARVE_TRY(file->truncate(0));
    VARVE_TRY(file->write_at(0, base::as_bytes(format::encode_superblock(superblock))));
    VARVE_TRY(file->sync());
  }
  VARVE_TRY(files->sync_directory(path));
  VARVE_TRY(remove_catalog(*files, paths));
  for (const auto& folder : {paths.catalog(), paths.all_series(), paths.all_staging()}) {
    VARVE_TRY(files->make_directory(folder));
  }
  {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    VARVE_TRY(meta::Env::open(*files, paths.catalog(), options));
  }
  VARVE_TRY(files->sync_directory(paths.catalog()));
  VARVE_TRY(files->sync_directory(path));
  // Last: a folder without this file is not a repository.
  VARVE_TRY(files->rename(unfinished_name(paths), paths.superblock()));
  return files->sync_directory(path);
}

}  // namespace varve
