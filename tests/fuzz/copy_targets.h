// SPDX-License-Identifier: Apache-2.0
// The messages between the two ends of a copy.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

void copy_request(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> copy_request_seeds();
void copy_answer(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> copy_answer_seeds();

}  // namespace varve::fuzz
