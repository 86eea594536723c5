// SPDX-License-Identifier: Apache-2.0
#include "transfer/file_sink.h"

#include <unistd.h>

#include <cerrno>

#include "transfer/transfer_error.h"

namespace varve::transfer {

Result<void> write_all(int fd, std::span<const std::byte> bytes,
                       std::optional<std::uint64_t> offset) {
  while (!bytes.empty()) {
    const ssize_t n = offset ? ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(*offset))
                             : ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return system_error("write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    if (offset) *offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace varve::transfer
