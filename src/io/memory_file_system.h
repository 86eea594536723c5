// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "io/file_system.h"

namespace varve::io {

/// Returns a file system in memory, for tests. FaultyFileSystem::lose_unsynced() builds on memory
/// file systems.
[[nodiscard]] std::unique_ptr<FileSystem> make_memory_file_system();

}  // namespace varve::io
