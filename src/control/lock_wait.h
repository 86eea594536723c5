// SPDX-License-Identifier: Apache-2.0
// Waits for the repository's lock after an unmount: umount(8) returns before the daemon has written
// everything and released the lock.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "varve/result.h"

namespace varve::control {

inline constexpr std::chrono::seconds kEndingMax{10};
inline constexpr std::chrono::milliseconds kEndingPause{50};

/// Returns true if the holder of the repository's lock may release it soon: no daemon answers, or
/// one without a mount. Returns false for a daemon that serves a mount.
[[nodiscard]] bool holder_may_be_ending(const std::string& repository);

/// Calls `open`. Repeats the call while it fails with kLocked and the holder may be ending, for at
/// most kEndingMax. Returns the last result.
template <typename Open>
[[nodiscard]] auto open_when_unlocked(const std::string& repository, const Open& open)
    -> decltype(open()) {
  const auto deadline = std::chrono::steady_clock::now() + kEndingMax;
  for (;;) {
    auto opened = open();
    if (opened || opened.error().code() != ErrorCode::kLocked ||
        std::chrono::steady_clock::now() >= deadline || !holder_may_be_ending(repository)) {
      return opened;
    }
    std::this_thread::sleep_for(kEndingPause);
  }
}

}  // namespace varve::control
