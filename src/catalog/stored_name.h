// SPDX-License-Identifier: Apache-2.0
// The replacement that Varve shows for a stored name that the rules do not allow
// (varve/version_name.h).
#pragma once

#include <cstdint>
#include <string>

namespace varve::catalog {

/// Returns the name that Varve shows for the series or version with this number while the stored
/// name is not allowed.
[[nodiscard]] std::string replacement_name(std::uint32_t number);

}  // namespace varve::catalog
