// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "io/file_system.h"

namespace varve::io {

/// Files in memory, for tests. lose_unsynced() of FaultyFileSystem builds on it.
[[nodiscard]] std::unique_ptr<FileSystem> make_memory_file_system();

}  // namespace varve::io
