// SPDX-License-Identifier: Apache-2.0
// The segment stores of an attached folder, whose segments, volumes and parity are in an object
// store.
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "remote/distant_data.h"
#include "store/segment_store.h"

namespace varve::remote {

/// Returns the read-only segment store in the folder `directory` of the repository at `root`. Its
/// answers_later() is true.
/// Lifetime: `files`, the file system of the folder on the disk, and `data` outlive the store.
[[nodiscard]] std::unique_ptr<store::SegmentStore> make_distant_store(io::FileSystem& files,
                                                                      DistantData& data,
                                                                      const std::string& root,
                                                                      std::string directory);

}  // namespace varve::remote
