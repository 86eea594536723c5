// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::store {

/// Reads the containers in the first `bytes` of a file, which end there, verifies them, and
/// writes each one where it was. For a file whose sync has failed: Linux drops what it could not
/// write, and the next sync says that all is well. kCorrupt if one is not there any more; what
/// is written is never anything else than a whole container that was read. `compact` as the
/// containers are.
[[nodiscard]] Result<void> rewrite_containers(io::FileSystem& files, const std::string& path,
                                              std::uint64_t bytes, bool compact);

}  // namespace varve::store
