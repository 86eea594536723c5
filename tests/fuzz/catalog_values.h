// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Stores the input without its first byte in the catalog, with a correct checksum, and reads it
/// with every reader of its table. The first byte chooses the table and key.
void catalog_values(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> catalog_value_seeds();

}  // namespace varve::fuzz
