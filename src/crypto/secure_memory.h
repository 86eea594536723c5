// SPDX-License-Identifier: Apache-2.0
// Memory for secrets, outside the ordinary heap.
#pragma once

#include <cstddef>
#include <memory>

#include "varve/result.h"

namespace varve::crypto {

/// Largest block of allocate_secure(), in bytes.
inline constexpr std::size_t kSecureBytesMax = std::size_t{16} << 10;

/// Returns a block of zeros in memory that is locked, left out of core dumps, and wiped when the
/// last pointer to the block is gone. `bytes` is 1 to kSecureBytesMax.
///
/// The number of blocks is bounded by the machine's memory only. Beyond the system's limit for
/// locked memory (RLIMIT_MEMLOCK), further pages stay unlocked, and the process logs one warning.
/// A child of a fork inherits no locks: its first call locks all pages again. Thread-safe.
/// Errors: kIo without memory.
[[nodiscard]] Result<std::shared_ptr<std::byte>> allocate_secure(std::size_t bytes);

}  // namespace varve::crypto
