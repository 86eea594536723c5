// SPDX-License-Identifier: Apache-2.0
// Creates a repository. The first step creates varve.repo.tmp, the last step renames the file to
// varve.repo. In between the folder is an unfinished creation, and the next attempt begins again.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "base/random_bytes.h"
#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "catalog/series_settings.h"
#include "crypto/key_slots.h"
#include "format/key_slot_text.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "io/posix_file_system.h"
#include "meta/env_files.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "remote/bucket_config.h"
#include "repo/create_repository.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/repository.h"

namespace varve {
namespace {

// Makes the repository's folder, for the owner only, and the parent folders with the modes of
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

/// Returns true if an unfinished creation, or any file system, may leave a file or folder `name`.
Result<bool> may_be_left(io::FileSystem& files, const store::RepositoryPaths& paths,
                         const std::string& name, bool unfinished) {
  const std::string path = paths.root() + "/" + name;
  if (name == "lost+found") return true;
  if (path == paths.lock()) {
    VARVE_TRY_ASSIGN(const std::uint64_t bytes, files.tree_bytes(path));
    return bytes == 0;
  }
  if (!unfinished) return false;
  if (path == unfinished_name(paths) || name == remote::kConnectingName) return true;
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

/// Removes the catalog of an unfinished creation, in any state.
Result<void> remove_catalog(io::FileSystem& files, const store::RepositoryPaths& paths) {
  VARVE_TRY_ASSIGN(const bool exists, files.exists(paths.catalog()));
  if (!exists) return {};
  VARVE_TRY_ASSIGN(const auto names, files.list(paths.catalog()));
  for (const auto& name : names) VARVE_TRY(files.remove(paths.catalog() + "/" + name));
  return {};
}

Result<std::string> new_repository_id() {
  VARVE_TRY_ASSIGN(const auto id, base::random_bytes<16>());
  return format::hex_text(id);
}

/// Adds the lines of the first key to the superblock. Returns the keys of the new repository, or
/// null for a plain repository.
Result<std::shared_ptr<const crypto::KeyRing>> make_keys(
    format::Superblock& superblock, const std::optional<Encryption>& encryption) {
  if (!encryption) return std::shared_ptr<const crypto::KeyRing>();
  format::KeyLines lines;
  const auto chosen = encryption->cipher.empty() ? std::optional(crypto::faster_cipher())
                                                 : format::parse_cipher(encryption->cipher);
  if (!chosen) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("there is no cipher \"{}\"; use aes-256-gcm or chacha20-poly1305",
                             encryption->cipher));
  }
  lines.cipher = *chosen;
  VARVE_TRY_ASSIGN(auto master, crypto::SecretKey::random());
  VARVE_TRY_ASSIGN(auto slot,
                   crypto::seal_slot(encryption->first_key, 1, base::SystemClock().now().seconds,
                                     master, superblock.repository_id));
  lines.slots.push_back(std::move(slot));
  superblock.encryption = std::move(lines);
  return crypto::KeyRing::make(std::move(master), superblock.repository_id, *chosen);
}

Result<void> check_settings(const FirstSettings& settings) {
  if (settings.new_series) {
    VARVE_TRY(check_placement(settings.new_series->placement));
    VARVE_TRY(check_rewrite(settings.new_series->rewrite));
  }
  if (settings.arrange) VARVE_TRY(catalog::validate_arrange_settings(*settings.arrange));
  return check_pool_index(settings.pool_index);
}

/// Stores all settings different from the defaults.
Result<void> put_settings(const meta::Env& env, const FirstSettings& settings,
                          const SeriesSettings& initial) {
  const bool has_pool_index = settings.pool_index != PoolIndexChoice();
  const bool has_new_series = settings.new_series && *settings.new_series != initial;
  if (!has_new_series && !settings.arrange && !has_pool_index) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(env));
  if (has_new_series) {
    VARVE_TRY(catalog::put_new_series_settings(txn, *settings.new_series, initial));
  }
  if (settings.arrange) VARVE_TRY(catalog::put_arrange_settings(txn, *settings.arrange));
  if (has_pool_index) VARVE_TRY(catalog::put_pool_index(txn, settings.pool_index));
  return txn.commit();
}

}  // namespace

Result<void> Repository::create(const std::string& path, const RepositoryParameters& parameters,
                                const CreateOptions& options) {
  return repo::create_repository(path, parameters, options, {});
}

namespace repo {

Result<void> create_repository(
    const std::string& path, const RepositoryParameters& parameters, const CreateOptions& options,
    const std::function<Result<void>(io::FileSystem& files)>& before_last) {
  const bool encrypted = options.encryption.has_value();
  VARVE_TRY_ASSIGN(const auto own, ingest::parameters_for(parameters, encrypted));
  VARVE_TRY(ingest::check_parameters(own, encrypted));
  VARVE_TRY(check_settings(options.settings));
  VARVE_TRY(meta::check_system());
  // A refused key leaves no folder.
  format::Superblock superblock;
  superblock.parameters = own;
  const SeriesSettings initial{parameters.placement, Rewrite::kNone};
  superblock.needs_pool =
      catalog::needs_pool_feature(initial) ||
      catalog::needs_pool_feature(options.settings.new_series.value_or(initial));
  superblock.needs_marks = true;
  superblock.needs_label_parts = before_last != nullptr;
  superblock.needs_delta = options.settings.arrange && options.settings.arrange->delta != 0;
  VARVE_TRY_ASSIGN(superblock.repository_id, new_repository_id());
  VARVE_TRY_ASSIGN(const auto keys, make_keys(superblock, options.encryption));
  VARVE_TRY(make_folder(path));
  VARVE_TRY_ASSIGN(const auto files, io::open_root(path, {.trust_owner = options.trust_owner}));
  const store::RepositoryPaths paths(path);
  // Checks the folder before locking, because the lock makes a file.
  VARVE_TRY(check_folder(*files, paths));
  const auto lock = files->lock(paths.lock());
  if (!lock && lock.error().code() == ErrorCode::kLocked) {
    return Error(ErrorCode::kLocked, "another process creates a repository in " + path);
  }
  if (!lock) return lock.error();
  VARVE_TRY(check_folder(*files, paths));

  {
    VARVE_TRY_ASSIGN(const auto file,
                     files->open(unfinished_name(paths), io::OpenMode::kReadWrite));
    VARVE_TRY(file->truncate(0));
    VARVE_TRY(file->write_at(0, base::as_bytes(format::encode_superblock(superblock, keys.get()))));
    VARVE_TRY(file->sync());
  }
  VARVE_TRY(files->sync_directory(path));
  VARVE_TRY(remove_catalog(*files, paths));
  VARVE_TRY(remote::note_connected(*files, path));
  for (const auto& folder : {paths.catalog(), paths.all_series(), paths.all_staging()}) {
    VARVE_TRY(files->make_directory(folder));
  }
  {
    meta::EnvOptions env;
    env.tables = meta::catalog::kTables;
    env.keys.ring = keys;
    VARVE_TRY_ASSIGN(const auto catalog, meta::Env::open(*files, paths.catalog(), env));
    VARVE_TRY(put_settings(catalog, options.settings, initial));
  }
  if (before_last) VARVE_TRY(before_last(*files));
  VARVE_TRY(files->sync_directory(paths.catalog()));
  VARVE_TRY(files->sync_directory(path));
  // Last: a folder without varve.repo is not a repository.
  VARVE_TRY(files->rename(unfinished_name(paths), paths.superblock()));
  VARVE_TRY(files->sync_directory(path));
  // After a crash, the next writer completes the copy.
  return store::write_superblock_copy(*files, path, superblock, keys.get());
}

}  // namespace repo

}  // namespace varve
