// SPDX-License-Identifier: Apache-2.0
// Objects in the store as evidence of a lost head. docs/decisions/161.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/changes.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "varve/result.h"

namespace varve::remote {

/// Objects that are no evidence of a lost head.
struct NoEvidence {
  std::set<std::string> own{};  ///< Objects of interrupted takeovers by the same folder.
  /// Objects uploaded later, in seconds since 1970 by the store's clock: a writer may be about to
  /// create their head.
  std::int64_t uploaded_after = std::numeric_limits<std::int64_t>::max();
};

/// Searches for catalog objects without a listed head, not older than the newest listed head: the
/// last uploads before a head that is lost, or that was never created. If the list shows objects
/// without the newest head, reads up to 64 older heads. Returns the finding as an error; nullopt
/// without a finding. Errors: errors of the bucket.
[[nodiscard]] Result<std::optional<Error>> find_lost_head(bucket::Bucket& bucket, CommitLog& log,
                                                          const Head& newest,
                                                          const NoEvidence& none);

/// Logs a warning about files' objects in the store newer than the head, and missing in the head's
/// map. Interrupted uploads leave objects without a head. Errors: errors of the bucket.
[[nodiscard]] Result<void> warn_of_newer_data(bucket::Bucket& bucket, CommitLog& log,
                                              const Head& newest, const ObjectMap& map,
                                              const std::set<std::string>& own);

/// Returns the garbage noted in a folder, which includes all catalog objects of the folder's
/// interrupted takeovers. Returns nothing without a folder or a state.
[[nodiscard]] std::set<std::string> noted_garbage(io::FileSystem& files, const std::string& folder);

}  // namespace varve::remote
