// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "crypto/key_ring.h"
#include "format/data_codecs.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "remote/folder_storage.h"
#include "repo/settled_mark.h"
#include "repo/superblock_file.h"
#include "store/folder_store.h"
#include "store/repository_paths.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::repo {

/// The objects of a repository's folder after the opening.
struct OpenedFolder {
  std::string path;
  OpenOptions options;
  std::unique_ptr<remote::FolderStorage> storage;
  format::Superblock superblock;
  std::shared_ptr<const crypto::KeyRing> keys;  ///< Null for a plain repository.
  std::unique_ptr<io::FileSystem> files;
  std::unique_ptr<io::FileLock> lock;  ///< Null in a repository opened read-only.
  meta::Env catalog;
  bool may_follow = false;  ///< The folder is attached, with the catalog open for writing.
};

/// The folder of an open repository: the files, the keys, the catalog, and the object store if the
/// repository has an object store. All parts of an open repository share the folder. Thread-safe.
struct RepositoryFolder {
  explicit RepositoryFolder(OpenedFolder opened);

  /// Returns whether the folder only reads the repository, and another folder writes.
  [[nodiscard]] bool is_attached() const { return storage->is_attached(); }
  /// Errors: kReadOnly if the repository is open read-only.
  [[nodiscard]] Result<void> check_writable() const;
  /// Returns Repository::sequence().
  [[nodiscard]] Result<std::optional<std::uint64_t>> sequence() const;
  /// Returns whether the catalog's key has sealed half of the texts allowed for a key.
  [[nodiscard]] Result<bool> has_used_key() const;
  /// Returns the way of changes to the object store, if any.
  [[nodiscard]] remote::Replication& replication() const { return storage->replication(); }
  /// Ends the uploads to the object store, and waits for the end if StoreUse::waits. The catalog
  /// may be replaced afterwards.
  [[nodiscard]] Result<void> end_replication() const;

  const store::RepositoryPaths paths;
  const OpenOptions options;  ///< Without the key.
  const std::unique_ptr<remote::FolderStorage> storage;
  const std::unique_ptr<io::FileSystem> files;
  SuperblockFile superblock;
  const format::DataCodecs codecs;
  const std::unique_ptr<io::FileLock> lock;
  const bool may_follow;                       ///< As in OpenedFolder.
  std::atomic<bool> catalog_replaced = false;  ///< The open catalog may have no name any more.
  SettledMark settled;                         ///< Outlives the catalog.
  meta::Env catalog;
  base::SystemClock clock{};
};

}  // namespace varve::repo
