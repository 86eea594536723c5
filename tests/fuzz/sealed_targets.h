// SPDX-License-Identifier: Apache-2.0
// The targets that read encrypted values and encrypted staging files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Opens the record of an environment, and a value with it. Only what the keys sealed opens.
void sealed_value(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> sealed_value_seeds();

/// Opens and reads an encrypted staging file, and writes on. Only what the keys sealed is read.
void staging_log(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> staging_log_seeds();

}  // namespace varve::fuzz
