// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Changes pages of a database file according to the input. If the page check accepts the file,
/// LMDB must be able to read and write all of it, and the check must accept the result.
void environment(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> environment_seeds();

}  // namespace varve::fuzz
