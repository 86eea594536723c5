// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// The use of an environment's file, in bytes.
struct PageUse {
  std::uint64_t used = 0;  ///< Pages up to the last one, free pages included.
  std::uint64_t free = 0;  ///< Pages that no tree uses. LMDB fills them again, but keeps them.
};
/// Reads LMDB's table of free pages. Errors: kIo.
[[nodiscard]] Result<PageUse> page_use(const Env& env);

}  // namespace varve::meta
