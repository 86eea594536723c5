// SPDX-License-Identifier: Apache-2.0
// The heads that a store keeps. docs/decisions/096.
#pragma once

#include <cstdint>

namespace varve::remote {

/// Retention of heads: the guard head is this much older than the newest head, and all heads above
/// the guard head stay.
struct HeadRetention {
  std::uint64_t heads = 1000;
  std::int64_t seconds = std::int64_t{30} * 24 * 60 * 60;
};

}  // namespace varve::remote
