// SPDX-License-Identifier: Apache-2.0
// Targets for the requests that any program of the machine can send to `varve web`.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Parses the bytes of a connection, all at once and in parts.
void web_request(std::span<const std::byte> input);
std::vector<std::string> web_request_seeds();

}  // namespace varve::fuzz
