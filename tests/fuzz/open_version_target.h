// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Records of the overlay of an open version, a clone of a sealed one, that an input puts there
/// with checksums that are right. The version is opened, used in every way, and sealed.
void open_version(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> open_version_seeds();

}  // namespace varve::fuzz
