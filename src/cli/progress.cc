// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/output.h"

namespace varve::cli {
namespace {

constexpr auto kRedrawInterval = std::chrono::milliseconds(100);
// The first data comes from caches or waits for the disk, so the speed is not typical.
constexpr double kSecondsToKnowSpeed = 2;
constexpr auto kLineInterval = std::chrono::milliseconds(1000);

std::string duration_text(double seconds) {
  const auto s = static_cast<std::uint64_t>(seconds);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

/// https://no-color.org: set and not empty means no colour.
bool colour_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0');
}

}  // namespace

Progress::Progress(std::string verb, bool shown)
    : verb_(std::move(verb)),
      shown_(shown),
      terminal_(terminal()),
      colour_(colour_wanted()),
      start_(Clock::now()) {}

Progress::~Progress() { clear(); }

bool Progress::terminal() {
  const char* type = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && type != nullptr && std::string_view(type) != "dumb";
}

void Progress::update(std::uint64_t bytes_done, std::uint64_t bytes_total, std::uint64_t files) {
  const std::lock_guard lock(mutex_);
  state_ = {bytes_done, bytes_total, files};
  const auto now = Clock::now();
  if (!shown_ || now - drawn_at_ < (terminal_ ? kRedrawInterval : kLineInterval)) return;
  drawn_at_ = now;
  if (!terminal_) {
    write_line();
    return;
  }
  drawn_ = true;
  const std::string line = colour_ ? "\r\x1b[K\x1b[36m" + text() + "\x1b[0m" : "\r\x1b[K" + text();
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void Progress::print_line() {
  const std::lock_guard lock(mutex_);
  erase_line();
  write_line();
}

void Progress::write_line() {
  const std::string line = "varve: " + text() + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  erase_line();
}

void Progress::erase_line() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs("\r\x1b[K", stderr);
}

std::string Progress::text() const {
  return progress_text(verb_, state_, std::chrono::duration<double>(Clock::now() - start_).count());
}

std::string progress_text(const std::string& verb, const ProgressState& state, double seconds) {
  const double done = static_cast<double>(state.bytes_done);
  const double speed = done / std::max(0.001, seconds);
  std::string line = fmt::format("{}: {}", verb, size_text(state.bytes_done, false));
  if (state.bytes_total > 0) {
    const double part = std::min(1.0, done / static_cast<double>(state.bytes_total));
    line += fmt::format(" of {} ({:.0f} %)", size_text(state.bytes_total, false), part * 100);
  }
  if (state.files > 0) line += fmt::format(", {} files", state.files);
  line += fmt::format(", {}/s, {}", size_text(static_cast<std::uint64_t>(speed), false),
                      duration_text(seconds));
  if (state.bytes_total > state.bytes_done && speed >= 1 && seconds >= kSecondsToKnowSpeed) {
    const auto left = static_cast<double>(state.bytes_total - state.bytes_done);
    line += fmt::format(", {} left", duration_text(left / speed));
  }
  return line;
}

}  // namespace varve::cli
