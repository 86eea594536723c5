// SPDX-License-Identifier: Apache-2.0
#include "control/stop_request.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace varve::control {

StopRequest::StopRequest() : event_(::eventfd(0, EFD_CLOEXEC)) {}

void StopRequest::stop() {
  source_.request_stop();
  const std::uint64_t one = 1;
  // The first write to an eventfd cannot fail.
  (void)!::write(event_.get(), &one, sizeof one);
}

}  // namespace varve::control
