// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "varve/result.h"

namespace varve::transfer {

/// Returns the names in an open directory in byte order, without "." and "..".
[[nodiscard]] Result<std::vector<std::string>> list_names(int directory_fd);

}  // namespace varve::transfer
