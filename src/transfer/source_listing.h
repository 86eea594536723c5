// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "varve/result.h"

namespace varve::transfer {

/// The names in an open directory without "." and "..", in byte order.
[[nodiscard]] Result<std::vector<std::string>> list_names(int directory_fd);

}  // namespace varve::transfer
