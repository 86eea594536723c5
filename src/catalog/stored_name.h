// SPDX-License-Identifier: Apache-2.0
// The displayed replacement of a forbidden stored name (varve/version_name.h).
#pragma once

#include <cstdint>
#include <string>

namespace varve::catalog {

/// Returns the name that Varve shows for the series or version `number` while the stored name is
/// forbidden.
[[nodiscard]] std::string replacement_name(std::uint32_t number);

}  // namespace varve::catalog
