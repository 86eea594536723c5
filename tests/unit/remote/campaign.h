// SPDX-License-Identifier: Apache-2.0
// Which requests of a history a campaign makes fail.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace varve::test {

/// Returns the request that a campaign's first mishap meets: VARVE_TEST_FROM.
inline std::uint64_t from_request() {
  const char* const wanted = std::getenv("VARVE_TEST_FROM");
  return wanted == nullptr ? 0 : std::strtoull(wanted, nullptr, 10);
}
/// Prints how many mishaps were tried.
inline void tell_tried(std::uint64_t mishaps, std::uint64_t requests) {
  std::printf("%llu mishaps in histories of %llu requests\n",
              static_cast<unsigned long long>(mishaps), static_cast<unsigned long long>(requests));
}

}  // namespace varve::test
