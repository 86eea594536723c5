// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "io/file_system.h"

namespace varve::io {

/// Returns a file that wraps a descriptor. `direct`: the caller requested direct access, even if
/// the file system does not support it. The file then checks the alignment of every access. If the
/// file system accepts O_DIRECT and then refuses an access with EINVAL, the file uses the page
/// cache from then on.
[[nodiscard]] std::unique_ptr<File> make_posix_file(base::UniqueFd fd, std::string path,
                                                    bool direct);

}  // namespace varve::io
