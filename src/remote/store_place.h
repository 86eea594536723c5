// SPDX-License-Identifier: Apache-2.0
// The place of a repository in an object store, before the folder has a state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "bucket/abilities.h"
#include "bucket/bucket.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "remote/bucket_config.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// Decodes a superblock and checks the parameters, as ingest::read_superblock().
using ReadSuperblock = std::function<Result<format::Superblock>(std::string_view text)>;

/// Returns the configuration of a folder for a place.
[[nodiscard]] BucketConfig config_of(const StorePlace& place, bool reads_only);

/// Returns the text of the store's superblock; nullopt without a repository. Errors: kCorrupt with
/// advice; errors of the bucket.
[[nodiscard]] Result<std::optional<std::string>> superblock_in(bucket::Bucket& bucket);
/// Returns the error for an unreadable superblock. A reading folder cannot repair the object.
[[nodiscard]] Error damaged_superblock(const bucket::Bucket& bucket);

/// Returns the id of the repository. Without `varve.repo`, the names of the objects tell the id.
/// `listed`: the first listed object. Errors: kNoRepository; kCorrupt; errors of the bucket.
[[nodiscard]] Result<std::string> repository_in(bucket::Bucket& bucket,
                                                const bucket::ListPage& listed,
                                                const ReadSuperblock& read_superblock);

/// Begins to count the folder's requests, and notes the result of the probe, if the store was
/// probed.
[[nodiscard]] Result<void> note_first_use(const bucket::Bucket& bucket, io::FileSystem& files,
                                          const std::string& folder,
                                          const bucket::ProbeRecord& probed);

}  // namespace varve::remote
