// SPDX-License-Identifier: Apache-2.0
// The writer's folder of a repository in an object store: as a file system, and as a segment store.
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "replica/local_data.h"
#include "store/segment_store.h"

namespace varve::replica {

/// Returns a file system that shows the segments and volumes of the repository at `root` through
/// `data`, and the files of `below` everywhere else.
/// Lifetime: `data` outlives the file system, which keeps `owner` alive.
[[nodiscard]] std::unique_ptr<io::FileSystem> make_writer_files(
    std::unique_ptr<io::FileSystem> below, LocalData& data, std::string root,
    std::shared_ptr<const void> owner = nullptr);

/// Returns the segment store in the folder `directory` of the repository at `root`. Evicted files
/// are read from the object store. answers_later() is true if any file is evicted at the call.
/// Lifetime: `files`, which make_writer_files() returned, and `data` outlive the store.
[[nodiscard]] Result<std::unique_ptr<store::SegmentStore>> make_writer_store(io::FileSystem& files,
                                                                             LocalData& data,
                                                                             std::string root,
                                                                             std::string directory);

}  // namespace varve::replica
