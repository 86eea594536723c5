// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace varve::layout {

/// A frame of a planned group.
struct PlannedFrame {
  std::uint32_t chunks = 0;
  std::uint32_t raw_bytes = 0;
  std::uint8_t prefix = 0;  ///< Distance to the prefix, in frames; 0: the frame has no prefix.
  bool ends_group = false;  ///< The next frame begins a group.
};

}  // namespace varve::layout
