// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Puts the input's records into the overlay of an open clone, with correct checksums. Then opens
/// the version, uses it in every way, and seals it.
void open_version(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> open_version_seeds();

}  // namespace varve::fuzz
