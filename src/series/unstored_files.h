// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "maintain/open_losses.h"

namespace varve::series {

/// Implements maintain::FindUnstoredFiles.
[[nodiscard]] Result<LostFiles> find_unstored_files(const maintain::OpenVersionsAt& at,
                                                    const catalog::VersionRecord& version);

}  // namespace varve::series
