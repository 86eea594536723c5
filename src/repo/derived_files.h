// SPDX-License-Identifier: Apache-2.0
// Finds damaged files that the next writer does not need, or makes again.
#pragma once

#include <string>
#include <vector>

#include "maintain/derived_faults.h"

namespace varve::repo {

/// Implements maintain::FindDerivedFaults. `files` opens sealed files.
[[nodiscard]] Result<std::vector<maintain::DerivedFault>> find_derived_faults(
    io::FileSystem& files, const std::string& repository, maintain::DerivedFiles which);

}  // namespace varve::repo
