// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/result.h"

namespace varve::control {

/// The standard input of a child process.
enum class ChildInput : std::uint8_t {
  kInherited,  ///< The standard input of this process.
  kEmpty,      ///< /dev/null.
};

/// A child process. Not thread-safe.
class ChildProcess {
 public:
  /// Runs a program with arguments, without a shell. A name without a slash is looked up in PATH.
  /// `output` becomes the standard output of the program; messages of the program go to the
  /// standard error of this process. Signals have their default actions.
  /// Errors: kIo or kNotFound if the program cannot be run.
  [[nodiscard]] static Result<ChildProcess> start(std::vector<std::string> words, int output,
                                                  ChildInput input);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Sends SIGTERM to the child and, after a second, SIGKILL. Waits for the end of the child.
  ~ChildProcess();

  /// Returns whether the child has ended.
  [[nodiscard]] bool has_ended();
  /// Waits for the end. Returns the exit code, or 128 and the number of the fatal signal; -1 if the
  /// system reports neither.
  int wait();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;  // 0 once the child has ended.
  std::optional<int> status_;
};

}  // namespace varve::control
