// SPDX-License-Identifier: Apache-2.0
// Time limits for a daemon that may be stopped, and for a mount of such a daemon.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace varve::control {

/// A daemon that has sent nothing for this long counts as hanging.
inline constexpr std::chrono::milliseconds kSilenceMax{20'000};
/// The caller gives up on a process that has been stopped for this long.
inline constexpr std::chrono::milliseconds kStoppedMax{2'000};

/// Returns true if a signal or a debugger has stopped the process.
[[nodiscard]] bool is_stopped(pid_t process);

/// Returns advice for the user about a daemon that does not answer.
[[nodiscard]] std::string advice_for_silence(pid_t process);

/// Runs `task` on another thread. Returns false if it has not ended after `patience`. The task then
/// continues, so it must own everything that it uses. It must not throw.
[[nodiscard]] bool ends_within(std::chrono::milliseconds patience, std::function<void()> task);

/// Calls `ask`, which may wait for a file system that never answers. Returns nothing after
/// `patience`. `ask` must own everything that it uses.
template <typename T>
[[nodiscard]] std::optional<T> answer_within(std::chrono::milliseconds patience,
                                             std::function<T()> ask) {
  const auto answer = std::make_shared<std::optional<T>>();
  const auto task = [answer, asked = std::move(ask)] { answer->emplace(asked()); };
  if (!ends_within(patience, task)) return std::nullopt;
  return std::move(*answer);
}

}  // namespace varve::control
