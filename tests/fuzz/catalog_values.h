// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Puts the input, but for its first byte, under a key of the catalog that the first byte chooses,
/// with a checksum that is right, and reads it by all that reads that table.
void catalog_values(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> catalog_value_seeds();

}  // namespace varve::fuzz
