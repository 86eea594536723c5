// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

namespace varve::io {

/// Repeats a system call that a signal interrupted.
template <typename Call>
auto retried(Call call) {
  while (true) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

}  // namespace varve::io
