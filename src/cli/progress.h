// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace varve::cli {

/// The state of a long command.
struct ProgressState {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;  ///< 0 if unknown.
  std::uint64_t files = 0;        ///< 0 is not shown.
};

/// Returns one line about a command running for `seconds`, with the remaining time unless the
/// command began less than two seconds ago: the speed is unknown until then.
[[nodiscard]] std::string progress_text(const std::string& verb, const ProgressState& state,
                                        double seconds);

/// Shows the progress of a command on stderr: on a terminal as a redrawn line, otherwise as a new
/// line each second. Thread-safe.
class Progress {
 public:
  /// With `shown` false, only print_line() writes.
  Progress(std::string verb, bool shown);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Removes the redrawn line.
  ~Progress();

  /// Sets the present state. `bytes_total` is 0 if unknown; a `files` of 0 is not shown. Draws at
  /// most ten times a second.
  void update(std::uint64_t bytes_done, std::uint64_t bytes_total, std::uint64_t files);
  /// Prints the present state as a permanent line.
  void print_line();
  /// Removes the redrawn line, to make room for messages.
  void clear();

  /// Returns true if stderr is a terminal that can redraw a line.
  [[nodiscard]] static bool terminal();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string text() const;
  void erase_line();
  void write_line();

  const std::string verb_;
  const bool shown_;
  const bool terminal_;
  const bool colour_;
  const Clock::time_point start_;
  std::mutex mutex_;
  Clock::time_point drawn_at_;
  bool drawn_ = false;
  ProgressState state_;
};

}  // namespace varve::cli
