// SPDX-License-Identifier: Apache-2.0
// Opening a version in a series that may have to be created for it.
#pragma once

#include <functional>
#include <string_view>

#include "varve/repository.h"

namespace varve {

/// Finds the series, or creates it, and returns what `open` makes of it. If `open` fails, a series
/// that was created for it is removed again.
[[nodiscard]] Result<VersionInfo> open_in_series(
    Repository& repository, std::string_view name,
    const std::function<Result<VersionInfo>(const SeriesInfo&)>& open);

}  // namespace varve
