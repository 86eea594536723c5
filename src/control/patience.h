// SPDX-License-Identifier: Apache-2.0
// Bounds on waiting for a daemon that may be stopped, or for a mount whose daemon is.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace varve::control {

/// Without a sign of life for so long, a daemon is taken for one that hangs.
inline constexpr std::chrono::milliseconds kSilenceMax{20'000};
/// A process that is stopped for so long is not waited for.
inline constexpr std::chrono::milliseconds kStoppedMax{2'000};

/// True if a signal or a debugger has stopped the process.
[[nodiscard]] bool is_stopped(pid_t process);

/// Returns what a user can do about a daemon that does not answer.
[[nodiscard]] std::string advice_for_silence(pid_t process);

/// Runs `task` on another thread, and returns false if it has not ended after `patience`. It then
/// goes on by itself, so it must own everything that it uses, and must not throw.
[[nodiscard]] bool ends_within(std::chrono::milliseconds patience, std::function<void()> task);

/// Calls `ask`, which may wait for a file system that never answers. Returns nothing after
/// `patience`; `ask` must own what it uses.
template <typename T>
[[nodiscard]] std::optional<T> answer_within(std::chrono::milliseconds patience,
                                             std::function<T()> ask) {
  const auto answer = std::make_shared<std::optional<T>>();
  const auto task = [answer, asked = std::move(ask)] { answer->emplace(asked()); };
  if (!ends_within(patience, task)) return std::nullopt;
  return std::move(*answer);
}

}  // namespace varve::control
