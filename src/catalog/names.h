// SPDX-License-Identifier: Apache-2.0
// The rules for names of series and versions, checked when a user gives a name and when a record is
// read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The name under which a mount shows the newest sealed version. No version has it.
inline constexpr std::string_view kLatestName = "latest";

/// Checks a name for a series.
/// Errors: kInvalid for an empty name, ".", ".." and a name with '/' or NUL; kNameTooLong above 255
/// bytes.
[[nodiscard]] Result<void> check_series_name(std::string_view name);
/// Checks a name for a version in `state`.
/// Errors: as above, kExists for "latest", kNotPermitted for a sealed version called NAME.partial.
[[nodiscard]] Result<void> check_version_name(std::string_view name, VersionState state);

/// Returns the name that Varve shows for the series or version with this number while the stored
/// name is not allowed.
[[nodiscard]] std::string replacement_name(std::uint32_t number);

}  // namespace varve::catalog
