// SPDX-License-Identifier: Apache-2.0
// The repetition of an attach whose folder is attached already.
#pragma once

#include <string>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/bucket_config.h"
#include "varve/result.h"

namespace varve::remote {

/// The marker file of an unfinished attach, in the attached folder.
inline constexpr const char* kUnfinishedAttach = "attaching.tmp";
/// Removes the marker, if there is one, from a folder whose attach is complete. Durable on return.
[[nodiscard]] Result<void> forget_unfinished_attach(io::FileSystem& files,
                                                    const std::string& folder);

/// Succeeds if the repository in a folder is attached as in `wanted`. Completes an attach that was
/// killed after the last change of the store. `newest`: the text of the store's newest head. Keeps
/// the folder's settings.
/// Errors: kExists if the folder is another repository, or has a different role; kLocked if another
/// folder has taken over the writing.
[[nodiscard]] Result<void> attach_again(bucket::Bucket& bucket, io::FileSystem& files,
                                        const std::string& folder, const BucketConfig& wanted,
                                        const std::string& newest);

}  // namespace varve::remote
