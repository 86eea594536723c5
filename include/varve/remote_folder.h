// SPDX-License-Identifier: Apache-2.0
// A folder on the local machine, seen from the object store of its repository.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "varve/options.h"
#include "varve/replication.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// A writer's staged data: data waiting for the object store.
struct StagedData {
  std::uint64_t bytes = 0;      ///< Includes data written out of order.
  std::uint64_t bytes_max = 0;  ///< The limit above which writers wait.
};

/// A repository's folder on the local machine, whose sealed data is in an object store: the records
/// that the folder keeps of the store, and checks of the store. Every folder is allowed: a folder
/// outside object stores has no such records. Each call reads the folder again. Thread-safe.
class RemoteFolder {
 public:
  /// `path`: the folder. `trust_owner`: see OpenOptions::trust_owner.
  explicit RemoteFolder(std::string path, bool trust_owner = false)
      : path_(std::move(path)), trust_owner_(trust_owner) {}

  /// Returns the content of the file `bucket` in the folder; nullopt for a folder without a
  /// repository, and for a repository outside object stores.
  /// Errors: those of reading the folder.
  [[nodiscard]] Result<std::optional<StoreFolder>> place() const;
  /// Returns the state recorded in the folder; nullopt for a repository outside object stores.
  /// Makes no request.
  /// Errors: those of reading the folder.
  [[nodiscard]] Result<std::optional<ReplicationInfo>> info() const;
  /// Returns the recorded use; nullopt for a repository outside object stores. Makes no request. No
  /// part of the calling process may have the repository open.
  /// Errors: those of reading the folder.
  [[nodiscard]] Result<std::optional<StoreUsage>> usage() const;
  /// Returns the staged data of the folder; zeros unless the folder writes to an object store.
  /// Lists the folder's files, and makes no request. No part of the calling process may have the
  /// repository open.
  /// Errors: those of reading the folder.
  [[nodiscard]] Result<StagedData> staged_data() const;
  /// Returns the versions, open versions included, that the object store lacks or has in another
  /// state. Empty for a repository outside object stores. Makes no request. No part of the calling
  /// process may have the repository open.
  /// Errors: those of reading the folder.
  [[nodiscard]] Result<std::vector<VersionId>> unreplicated_versions() const;
  /// Returns the changes not yet in the object store; none for a repository outside object stores,
  /// and before the first replicated state. Makes no request. No part of the calling process may
  /// have the repository open.
  /// Errors: those of reading the folder.
  [[nodiscard]] Result<UnreplicatedChanges> unreplicated_changes() const;
  /// Returns whether the object store has a sealed version in the folder's state. Makes no request.
  /// Another process may write meanwhile, but no part of the calling process may have the
  /// repository open.
  /// Errors: those of reading the folder; kNotFound without the version.
  [[nodiscard]] Result<bool> is_replicated(SeriesId series, VersionNumber number) const;

  /// Compares a listing of the object store with the newest state known to the folder: reports
  /// objects that are missing or have another length. Reads the small objects and their copies, and
  /// verifies the checksums. In an attached folder, also reports the loss of a newer state, which
  /// the folder cannot show. In a writer's folder, also tries the abilities of the store, and
  /// requests the lock of each object if the repository has object locks. With `reads_objects`,
  /// reads every object and verifies its checksum: the folder's own copies prove nothing about the
  /// store's. No part of the calling process may have the repository open.
  /// Errors: those of the store, and of reading the folder.
  [[nodiscard]] Result<StoreCheck> check(const OpenOptions& options,
                                         bool reads_objects = false) const;
  /// Removes unneeded objects of a repository in an object store, for a machine whose key may
  /// remove objects while the writers' keys may not. The folder is an attached folder; the call
  /// notes there the objects named by no head. A later call removes an object noted at least
  /// `wait_seconds` before, unless a newer head names the object. Writers may continue meanwhile.
  /// Errors: kInvalid unless the folder is attached; kLocked while another process uses the
  /// folder's state; kNotPermitted if the key may not remove objects; those of the store and the
  /// disk.
  [[nodiscard]] Result<ReclaimReport> reclaim(const OpenOptions& options,
                                              std::int64_t wait_seconds) const;

 private:
  std::string path_;
  bool trust_owner_;
};

}  // namespace varve
