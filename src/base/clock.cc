// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>

#include "base/calendar_text.h"

namespace varve::base {

Timestamp SystemClock::now() const {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return {t.tv_sec, static_cast<std::uint32_t>(t.tv_nsec)};
}

std::string local_time_text(const Timestamp& time) {
  return calendar_text(time, ::localtime_r, "%Y-%m-%d %H:%M:%S")
      .value_or(std::to_string(time.seconds));
}

}  // namespace varve::base
