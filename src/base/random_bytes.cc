// SPDX-License-Identifier: Apache-2.0
#include "base/random_bytes.h"

#include <sys/random.h>

#include <cerrno>

#include "base/system_error.h"

namespace varve::base {

Result<void> fill_random(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return io_error("cannot get random bytes from the kernel", got < 0 ? errno : EIO);
    out = out.subspan(static_cast<std::size_t>(got));  // A signal may end a long request early.
  }
  return {};
}

}  // namespace varve::base
