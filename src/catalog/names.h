// SPDX-License-Identifier: Apache-2.0
// Which names series and versions may have: asked when a name is given, and whenever one is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The name under which a mount shows the newest sealed version. No version has it.
inline constexpr std::string_view kLatestName = "latest";

/// Errors: kInvalid for an empty name, ".", ".." and a name with '/' or NUL; kNameTooLong above 255
/// bytes.
[[nodiscard]] Result<void> check_series_name(std::string_view name);
/// The same, and kExists for "latest", kNotPermitted for a sealed version called NAME.partial.
[[nodiscard]] Result<void> check_version_name(std::string_view name, VersionState state);

/// What Varve calls the series or version with this number while its record holds a name that is
/// not allowed.
[[nodiscard]] std::string replacement_name(std::uint32_t number);

}  // namespace varve::catalog
