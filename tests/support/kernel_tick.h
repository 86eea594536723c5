// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "transfer/source_clock.h"

namespace varve::test {

/// Waits until the kernel's time is later than the times of all changes so far. A late tick sets it
/// to less than the time of a change that the kernel has stamped with its fine clock.
inline void wait_for_kernel_tick() {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const Timestamp changed{now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec)};
  while (transfer::kernel_time() <= changed) ::usleep(500);
}

}  // namespace varve::test
