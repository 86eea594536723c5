// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "maintain/data_mender.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::maintain {

/// Has `mender` search the regular files below `folder` until it has found all. Follows no links;
/// skips what cannot be read.
[[nodiscard]] Result<void> search_folder(const std::string& folder,
                                         const RepositoryParameters& parameters,
                                         DataMender& mender);

}  // namespace varve::maintain
