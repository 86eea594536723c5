// SPDX-License-Identifier: Apache-2.0
// Opens a version in a series, creating the series if needed.
#pragma once

#include <functional>
#include <string_view>

#include "varve/repository.h"

namespace varve {

/// Finds or creates the series, passes it to `open`, and returns the result of `open`. If `open`
/// fails, removes the series again if this call created it.
[[nodiscard]] Result<VersionInfo> open_in_series(
    Repository& repository, std::string_view name,
    const std::function<Result<VersionInfo>(const SeriesInfo&)>& open);

}  // namespace varve
