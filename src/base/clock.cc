// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>

namespace varve::base {

Timestamp SystemClock::now() const {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return {t.tv_sec, static_cast<std::uint32_t>(t.tv_nsec)};
}

}  // namespace varve::base
