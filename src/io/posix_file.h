// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "io/file_system.h"

namespace varve::io {

/// A file of the kernel's. `direct`: it was opened for direct access, or would have been where the
/// file system has none; the alignment of every access is checked. Where the file system takes
/// O_DIRECT and then refuses the access with EINVAL, the page cache does the work from then on.
[[nodiscard]] std::unique_ptr<File> make_posix_file(base::UniqueFd fd, std::string path,
                                                    bool direct);

}  // namespace varve::io
