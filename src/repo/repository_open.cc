// SPDX-License-Identifier: Apache-2.0
// Opens repositories.
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "meta/compaction.h"
#include "meta/open_catalog.h"
#include "meta/schema.h"
#include "remote/open_storage.h"
#include "repo/open_store.h"
#include "repo/repository_impl.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "store/sealed_places.h"
#include "store/superblock_text.h"

namespace varve::repo {

Result<std::unique_ptr<RepositoryImpl>> RepositoryImpl::open_folder_at(
    const std::string& path, const OpenOptions& options, const remote::BucketHooks& hooks,
    remote::HeadLearning& learning) {
  const store::RepositoryPaths paths(path);
  VARVE_TRY_ASSIGN(auto files, store::open_folder(path, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, remote::config_to_open(*files, path, options.read_only));
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(*files, path));
  auto superblock = ingest::read_superblock(text);
  if (!superblock) return std::move(superblock).error().with_context(paths.superblock());
  std::unique_ptr<io::FileLock> lock;
  if (!options.read_only) {
    auto locked = files->lock(paths.lock());
    if (!locked) {
      if (locked.error().code() != ErrorCode::kLocked) return std::move(locked).error();
      // Readers with their own table of readers keep the catalog's pages as they are (O35).
      const bool is_read = files->lock_shared(paths.lock()).has_value();
      return Error(ErrorCode::kLocked,
                   path + (is_read ? " is read by a process of another user, or in another "
                                     "container or mount namespace, beside which nothing can be "
                                     "written: wait for the end of that command, or unmount"
                                   : " is in use by another process: it is mounted read-write, or "
                                     "a command is running. Wait for that process, or open the "
                                     "repository read-only"));
    }
    lock = std::move(*locked);
    const auto removed = meta::remove_unfinished_copy(*files, paths.catalog());
    if (!removed) base::log(base::LogLevel::kWarning, removed.error().message());
  }
  // After the lock, so that a command served by a daemon needs no key.
  auto keys = format::unlock_superblock(*superblock, text, options.key, options.encrypted_only);
  if (!keys) return std::move(keys).error().with_context(paths.root());
  VARVE_TRY_ASSIGN(auto storage,
                   remote::open_storage(path, config, options, hooks, keys->get(), learning));
  files = store::seal_files(std::move(files), *keys, path);
  VARVE_TRY_ASSIGN(const bool has_catalog, files->exists(paths.catalog_data()));
  if (!has_catalog) {
    return Error(ErrorCode::kCorrupt,
                 paths.catalog() + " is missing: run `varve repair`, which rebuilds it");
  }
  meta::EnvOptions env;
  env.tables = meta::catalog::kTables;
  env.optional_tables = meta::catalog::kTablesOptional;
  env.read_only = options.read_only;
  env.must_exist = true;
  env.keys.ring = *keys;
  env.writer_lock = paths.lock();
  VARVE_TRY(store::check_folders(*files, path));
  // follow() writes the catalog of an attached folder, unless the disk is read-only.
  const bool is_attached = storage->is_attached();
  env.read_only = false;
  auto writable = is_attached
                      ? meta::open_catalog(*files, paths.catalog(), env, options.probe_catalog)
                      : Result<meta::Env>(Error(ErrorCode::kReadOnly, ""));
  const bool may_follow = writable.has_value();
  if (!may_follow) env.read_only = options.read_only;
  auto catalog = may_follow
                     ? std::move(writable)
                     : meta::open_catalog(*files, paths.catalog(), env, options.probe_catalog);
  if (!catalog) return std::move(catalog).error();
  std::unique_ptr<RepositoryImpl> repository(
      new RepositoryImpl({.path = path,
                          .options = options,
                          .storage = std::move(storage),
                          .superblock = std::move(*superblock),
                          .keys = *std::move(keys),
                          .files = std::move(files),
                          .lock = std::move(lock),
                          .catalog = *std::move(catalog),
                          .may_follow = may_follow}));
  // The start may have to complete work interrupted by a crash, even at the limit.
  auto* const texts = repository->folder_.catalog.texts();
  if (texts != nullptr) texts->permit_spare_texts(true);
  VARVE_TRY(repository->start());
  if (texts != nullptr) texts->permit_spare_texts(false);
  repository->arranging_.resume();
  return repository;
}

// If the catalog's key has sealed half of the texts allowed for a key, the catalog gets a new key
// before any use. The first opening has made all comparisons of open() with the old key.
Result<std::unique_ptr<RepositoryImpl>> RepositoryImpl::open_with_room(
    const std::string& path, const OpenOptions& options, const remote::BucketHooks& hooks,
    remote::HeadLearning& learning) {
  {
    VARVE_TRY_ASSIGN(auto opened, open_folder_at(path, options, hooks, learning));
    VARVE_TRY_ASSIGN(const bool used, opened->folder_.has_used_key());
    if (!used) return opened;
    VARVE_TRY(opened->renew_key());
  }
  return open_folder_at(path, options, hooks, learning);
}

// The request for the newest head and the first reads share their round trips. If the local head
// is stale, or the present folder cannot be opened, the folder is opened in the ordinary way. A
// stale head wastes only the announced reads.
Result<std::unique_ptr<RepositoryImpl>> RepositoryImpl::open_itself(
    const std::string& path, const OpenOptions& options, const remote::BucketHooks& hooks) {
  remote::HeadLearning learning;
  learning.in_parallel = options.read_only && options.announce;
  {
    auto opened = open_with_room(path, options, hooks, learning);
    if (!learning.request) {
      return opened;
    }
    if (opened) {
      options.announce(**opened);
      auto newer = learning.request->answer((*opened)->folder_.codecs.keys().get());
      if (newer && !*newer) return opened;
      learning.request->end_requests();  // The destructor waits for reads in flight.
      if (!newer) return std::move(newer).error();
      learning.newer = *std::move(newer);
    }
  }
  remote::HeadLearning ordinary;
  ordinary.newer = std::move(learning.newer);
  return open_with_room(path, options, hooks, ordinary);
}

Result<std::unique_ptr<Repository>> RepositoryImpl::open(const std::string& path,
                                                         const OpenOptions& options,
                                                         const remote::BucketHooks& hooks) {
  VARVE_TRY_ASSIGN(auto opened, open_itself(path, options, hooks));
  return std::unique_ptr<Repository>(std::move(opened));
}

}  // namespace varve::repo
