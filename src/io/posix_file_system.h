// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "io/file_system.h"

namespace varve::io {

/// The kernel's file system.
[[nodiscard]] std::unique_ptr<FileSystem> make_posix_file_system();

}  // namespace varve::io
