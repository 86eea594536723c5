// SPDX-License-Identifier: Apache-2.0
// The names of series and versions: the rules, and the names with a meaning.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// The name under which a mount shows the newest sealed version. No version has it.
inline constexpr std::string_view kLatestName = "latest";

/// The suffix of an open version that only a rename without the suffix, or `varve seal`, seals.
inline constexpr std::string_view kPartialSuffix = ".partial";

[[nodiscard]] inline bool is_partial_name(std::string_view name) {
  return name.ends_with(kPartialSuffix);
}
[[nodiscard]] inline std::string partial_name(std::string_view name) {
  return std::string(name).append(kPartialSuffix);
}
/// Returns the name without the suffix; the whole name if it is not partial.
[[nodiscard]] inline std::string_view without_partial_suffix(std::string_view name) {
  return is_partial_name(name) ? name.substr(0, name.size() - kPartialSuffix.size()) : name;
}

/// Checks a name for a series.
/// Errors: kInvalid for an empty name, ".", ".." and a name with '/' or NUL; kNameTooLong above 255
/// bytes.
[[nodiscard]] Result<void> check_series_name(std::string_view name);
/// Checks a name for a version in `state`.
/// Errors: as above, kExists for "latest", kNotPermitted for a sealed version called NAME.partial.
[[nodiscard]] Result<void> check_version_name(std::string_view name, VersionState state);

}  // namespace varve
