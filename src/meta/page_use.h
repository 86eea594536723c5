// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// The use of an environment's file, in bytes.
struct PageUse {
  std::uint64_t used = 0;  ///< Pages up to the last page, free pages included.
  std::uint64_t free =
      0;  ///< Pages not used by any tree. LMDB fills free pages again, and keeps the file's length.
};
/// Reads LMDB's table of free pages. Errors: kIo.
[[nodiscard]] Result<PageUse> page_use(const Env& env);

}  // namespace varve::meta
