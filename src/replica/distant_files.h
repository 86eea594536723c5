// SPDX-License-Identifier: Apache-2.0
// A repository whose segments and volumes are in an object store: as a file system, and as a
// segment store.
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "replica/distant_data.h"
#include "store/segment_store.h"

namespace varve::replica {

/// Returns a read-only file system that shows the files of `data` in the repository at `root`, and
/// the files of `below` everywhere else.
/// Lifetime: `data` outlives the file system.
[[nodiscard]] std::unique_ptr<io::FileSystem> make_distant_files(
    std::unique_ptr<io::FileSystem> below, DistantData& data, std::string root);

/// Returns the read-only segment store in the folder `directory` of the repository at `root`. Its
/// answers_later() is true.
/// Lifetime: `files`, which make_distant_files() returned, and `data` outlive the store.
[[nodiscard]] std::unique_ptr<store::SegmentStore> make_distant_store(io::FileSystem& files,
                                                                      DistantData& data,
                                                                      const std::string& root,
                                                                      std::string directory);

}  // namespace varve::replica
