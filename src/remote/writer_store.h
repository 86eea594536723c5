// SPDX-License-Identifier: Apache-2.0
// The segment stores of the writer's folder of a repository in an object store.
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "remote/local_data.h"
#include "store/segment_store.h"

namespace varve::remote {

/// Returns the segment store in the folder `directory` of the repository at `root`. Evicted files
/// are read from the object store. answers_later() is true if any file is evicted at the call.
/// Lifetime: `files`, the file system of the folder on the disk, and `data` outlive the store.
[[nodiscard]] std::unique_ptr<store::SegmentStore> make_writer_store(io::FileSystem& files,
                                                                     LocalData& data,
                                                                     const std::string& root,
                                                                     std::string directory);

}  // namespace varve::remote
