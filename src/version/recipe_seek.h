// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "format/recipe.h"
#include "varve/result.h"

namespace varve::version {

enum class SeekFor : std::uint8_t { kData, kHole };

/// lseek(2) with SEEK_DATA or SEEK_HOLE in a file of `size` bytes; the file's end counts as a
/// hole. kNotFound (ENXIO) where there is none. Who knows a run at or before `offset`, and where
/// in the file it begins, spares the walk to it.
[[nodiscard]] inline Result<std::uint64_t> seek_in_recipe(const format::Recipe& recipe,
                                                          std::uint64_t size, std::uint64_t offset,
                                                          SeekFor wanted, std::size_t run = 0,
                                                          std::uint64_t run_begin = 0) {
  const bool data = wanted == SeekFor::kData;
  if (offset < size) {
    for (std::uint64_t begin = run_begin; run < recipe.runs.size(); ++run) {
      const auto& at = recipe.runs[run];
      const std::uint64_t end = begin + at.bytes;
      if (end > offset && at.is_hole() != data) return std::max(offset, begin);
      begin = end;
    }
    if (!data) return size;
  }
  return Error(ErrorCode::kNotFound, "past the end of the file", ENXIO);
}

}  // namespace varve::version
