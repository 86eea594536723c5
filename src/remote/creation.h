// SPDX-License-Identifier: Apache-2.0
// Creates a repository in an object store.
#pragma once

#include <functional>
#include <string>

#include "io/file_system.h"
#include "remote/bucket_hooks.h"
#include "remote/store_place.h"
#include "varve/object_lock.h"
#include "varve/options.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// The repository to create, and its folder.
struct Creation {
  StorePlace place{};
  std::string folder{};
  bool trust_owner = false;
  StoreAccess access{};
  ObjectLock lock{};
  KeySource key{};  ///< Returns the first key; empty for a plain repository.
  ReadSuperblock read_superblock{};
  /// Creates the repository in the folder, and calls `before_last` just before the folder becomes a
  /// repository.
  std::function<Result<void>(const std::function<Result<void>(io::FileSystem&)>& before_last)>
      create{};
};

/// Creates a repository as varve::create_in_store().
[[nodiscard]] Result<void> create_in_store(const Creation& creation, const BucketHooks& hooks);

}  // namespace varve::remote
