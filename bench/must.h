// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "varve/result.h"

namespace varve::bench {

/// Returns the value. An error ends the program.
template <typename T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message());
    std::exit(1);
  }
  return std::move(*result);
}
inline void must(Result<void> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message());
    std::exit(1);
  }
}

}  // namespace varve::bench
