// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Changes pages of a database file as the input says. If the check of its pages accepts it, LMDB
/// must be able to read and write all of it, and leave a file that is accepted again.
void environment(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> environment_seeds();

}  // namespace varve::fuzz
