// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace varve::base {

/// Returns whether the environment variable `variable` lists the file or folder at `path`, with
/// links resolved. The value is a list of absolute paths with colons between them.
[[nodiscard]] bool is_listed_path(const char* variable, const std::string& path);

}  // namespace varve::base
