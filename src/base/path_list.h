// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace varve::base {

/// Whether an environment variable, a list of absolute paths with colons between them, has the file
/// or folder that `path` leads to.
[[nodiscard]] bool is_listed_path(const char* variable, const std::string& path);

}  // namespace varve::base
