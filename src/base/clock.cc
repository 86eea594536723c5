// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>

namespace varve::base {

Timestamp SystemClock::now() const {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return {t.tv_sec, static_cast<std::uint32_t>(t.tv_nsec)};
}

std::string local_time_text(const Timestamp& time) {
  const auto seconds = static_cast<std::time_t>(time.seconds);
  std::tm parts{};
  char text[64];
  if (::localtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0) {
    return std::to_string(time.seconds);
  }
  return text;
}

}  // namespace varve::base
