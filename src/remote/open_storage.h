// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "remote/bucket_config.h"
#include "remote/bucket_hooks.h"
#include "remote/folder_storage.h"
#include "remote/head_request.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::remote {

/// Reads the configuration of the folder at `path`, for open_storage(); nullopt for a local
/// repository. Errors: as for read_config(); kReadOnly to write in an attached folder.
[[nodiscard]] Result<std::optional<BucketConfig>> config_to_open(io::FileSystem& files,
                                                                 const std::string& path,
                                                                 bool read_only);

/// Opens the storage of the folder at `path`, in the state that `config` gives. Call after the
/// folder was locked, and before the catalog is opened: an attached folder may get a newer catalog.
/// `keys`: null in a plain repository. Errors: as for opening the state.
[[nodiscard]] Result<std::unique_ptr<FolderStorage>> open_storage(
    const std::string& path, const std::optional<BucketConfig>& config, const OpenOptions& options,
    const BucketHooks& hooks, const crypto::KeyRing* keys, HeadLearning& learning);

}  // namespace varve::remote
