// SPDX-License-Identifier: Apache-2.0
// The folder of a repository, opened without a Repository: for checks without a key, and for
// repairs.
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "remote/bucket_hooks.h"
#include "store/folder_store.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::remote {

/// The folder of a repository, for a check or a repair.
struct WholeFolder {
  std::unique_ptr<io::FileSystem> files;  ///< The folder on the disk.
  /// Reads the evicted segments and volumes of the writer's folder from the object store. Empty
  /// without an object store.
  store::StoreOpener open_store{};
};
/// Opens the folder of a repository.
/// Errors: kReadOnly for an attached folder; as for reading the folder.
[[nodiscard]] Result<WholeFolder> open_whole_folder(const std::string& folder,
                                                    const OpenOptions& options,
                                                    const BucketHooks& hooks = {});

/// Returns success unless the folder is attached: an attached folder has no segments, so it cannot
/// be repaired, or checked without the store.
/// Errors: kReadOnly for an attached folder; as for reading the folder.
[[nodiscard]] Result<void> refuse_attached(const std::string& folder, bool trust_owner);

}  // namespace varve::remote
