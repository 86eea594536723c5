// SPDX-License-Identifier: Apache-2.0
// The targets that read containers and their frames.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Decodes a plain container: its header, then its frames, with their prefixes.
void container(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> container_seeds();

/// Decodes a sealed container. Only what the keys sealed opens, and it opens to what was sealed.
void sealed_container(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> sealed_container_seeds();

/// Decodes the stored bytes of a compressed frame.
void frame(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> frame_seeds();

}  // namespace varve::fuzz
