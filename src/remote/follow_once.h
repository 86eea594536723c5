// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::remote {

/// How an attached folder came to its present head.
enum class Followed : std::uint8_t {
  kNewest,     ///< The folder has the newest head that can be read.
  kElsewhere,  ///< Another process uses the folder, and may have an older head.
};
/// Brings an attached folder to the newest readable head, as its opening does, and reads the key
/// only if the store has a newer head. A loss in the store leaves the folder as it is. Holds the
/// repository's lock meanwhile. Errors: errors of the bucket, the disk and the key; kCorrupt for a
/// head of another history.
[[nodiscard]] Result<Followed> follow_newest(bucket::Bucket& bucket, io::FileSystem& files,
                                             const std::string& folder, const OpenOptions& options);

}  // namespace varve::remote
