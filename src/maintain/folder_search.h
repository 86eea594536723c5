// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "maintain/data_repairer.h"
#include "varve/result.h"

namespace varve::maintain {

/// Calls search_file() for the regular files below `folder` until all content is found. Follows no
/// links and skips unreadable files.
[[nodiscard]] Result<void> search_folder(const std::string& folder,
                                         const RepositoryParameters& parameters,
                                         DataRepairer& repairer);

}  // namespace varve::maintain
