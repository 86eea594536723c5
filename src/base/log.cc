// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <syslog.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

namespace varve::base {

namespace {
// The only process-wide settings: level and destination of messages belong to the process.
std::atomic<LogLevel> level_max{LogLevel::kWarning};
std::atomic<bool> to_syslog{false};
}  // namespace

void set_log_level(LogLevel level) { level_max = level; }

void use_syslog() {
  openlog("varve", LOG_PID, LOG_DAEMON);
  to_syslog = true;
}

void log(LogLevel level, std::string_view message) {
  if (level > level_max.load(std::memory_order_relaxed)) return;
  static constexpr std::array<int, 4> kPriorities = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
  const int length = static_cast<int>(message.size());
  if (to_syslog.load(std::memory_order_relaxed)) {
    syslog(kPriorities.at(static_cast<std::size_t>(level)), "%.*s", length, message.data());
    return;
  }
  std::fprintf(stderr, "varve: %.*s\n", length, message.data());
}

}  // namespace varve::base
