// SPDX-License-Identifier: Apache-2.0
// The repetition of an attach whose folder is attached already.
#pragma once

#include <string>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "replica/bucket_config.h"
#include "varve/result.h"

namespace varve::repo {

/// The file that an attach leaves in its folder until it has ended.
inline constexpr const char* kUnfinishedAttach = "attaching.tmp";

/// Succeeds if a folder that is a repository is attached as `wanted` says, and ends what an attach
/// left that was killed after its last change of the store. `newest`: the text of the store's
/// newest head. Keeps the folder's settings.
/// Errors: kExists if the folder is another repository, or has the other role; kLocked if another
/// folder has taken over from it.
[[nodiscard]] Result<void> attach_again(bucket::Bucket& bucket, io::FileSystem& files,
                                        const std::string& folder,
                                        const replica::BucketConfig& wanted,
                                        const std::string& newest);

}  // namespace varve::repo
