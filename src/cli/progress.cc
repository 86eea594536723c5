// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>
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
  bytes_done_ = bytes_done;
  bytes_total_ = bytes_total;
  files_ = files;
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
  const double seconds =
      std::max(0.001, std::chrono::duration<double>(Clock::now() - start_).count());
  const double speed = static_cast<double>(bytes_done_) / seconds;
  std::string line = fmt::format("{}: {}", verb_, size_text(bytes_done_, false));
  if (bytes_total_ > 0) {
    const double part =
        std::min(1.0, static_cast<double>(bytes_done_) / static_cast<double>(bytes_total_));
    line += fmt::format(" of {} ({:.0f} %)", size_text(bytes_total_, false), part * 100);
  }
  if (files_ > 0) line += fmt::format(", {} files", files_);
  line += fmt::format(", {}/s, {}", size_text(static_cast<std::uint64_t>(speed), false),
                      duration_text(seconds));
  if (bytes_total_ > bytes_done_ && speed >= 1) {
    line += fmt::format(", {} left",
                        duration_text(static_cast<double>(bytes_total_ - bytes_done_) / speed));
  }
  return line;
}

}  // namespace varve::cli
