// SPDX-License-Identifier: Apache-2.0
// Time limits for a daemon that may be stopped, and for the mount of a stopped daemon.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace varve::control {

/// Time without data from a daemon, after which the daemon counts as hanging.
inline constexpr std::chrono::milliseconds kSilenceMax{20'000};
/// Time after which the caller gives up on a stopped process.
inline constexpr std::chrono::milliseconds kStoppedMax{2'000};

/// Returns true if a signal or a debugger has stopped the process.
[[nodiscard]] bool is_stopped(pid_t process);

/// Returns advice for the user about a daemon that does not answer.
[[nodiscard]] std::string advice_for_silence(pid_t process);

/// Runs `task` on a new thread. Returns false if the task has not ended after `patience`. The task
/// then continues, so `task` must own all data in use. `task` must not throw.
[[nodiscard]] bool ends_within(std::chrono::milliseconds patience, std::function<void()> task);

/// Calls `ask` for an answer from a file system that may never answer. Returns nullopt after
/// `patience`. `ask` must own all data in use.
template <typename T>
[[nodiscard]] std::optional<T> answer_within(std::chrono::milliseconds patience,
                                             std::function<T()> ask) {
  const auto answer = std::make_shared<std::optional<T>>();
  const auto task = [answer, asked = std::move(ask)] { answer->emplace(asked()); };
  if (!ends_within(patience, task)) return std::nullopt;
  return std::move(*answer);
}

}  // namespace varve::control
