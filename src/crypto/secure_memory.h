// SPDX-License-Identifier: Apache-2.0
// Memory for secrets, outside the ordinary heap.
#pragma once

#include <cstddef>
#include <memory>

#include "varve/result.h"

namespace varve::crypto {

/// Returns zeros in memory that is locked, left out of core dumps, and wiped when the last pointer
/// is gone. Locks it again in a process that was forked, because a child does not inherit locks.
/// Errors: kIo without memory.
[[nodiscard]] Result<std::shared_ptr<std::byte>> allocate_secure(std::size_t bytes);

}  // namespace varve::crypto
