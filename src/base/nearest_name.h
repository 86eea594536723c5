// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::base {

/// Returns the name of which `wanted` is most likely a misspelling: the name with the fewest
/// differing letters (inserted, removed, changed, or swapped with a neighbour; upper and lower case
/// are equal). Returns nullopt if more than a third of the letters differ.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view wanted,
                                                      const std::vector<std::string>& names);

/// Returns "; did you mean "NAME"?", or "" if no name is near.
[[nodiscard]] std::string nearest_name_hint(std::string_view wanted,
                                            const std::vector<std::string>& names);

}  // namespace varve::base
