// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "format/recipe.h"
#include "varve/result.h"

namespace varve::version {

enum class SeekFor : std::uint8_t { kData, kHole };

/// lseek(2) with SEEK_DATA or SEEK_HOLE in a file of `size` bytes; the file's end counts as a
/// hole. kNotFound (ENXIO) where there is none.
[[nodiscard]] inline Result<std::uint64_t> seek_in_recipe(const format::Recipe& recipe,
                                                          std::uint64_t size, std::uint64_t offset,
                                                          SeekFor wanted) {
  const bool data = wanted == SeekFor::kData;
  std::uint64_t at = 0;
  if (offset < size) {
    for (const auto& run : recipe.runs) {
      at += run.bytes;
      if (at > offset && run.is_hole() != data) return std::max(offset, at - run.bytes);
    }
    if (!data) return size;
  }
  return Error(ErrorCode::kNotFound, "past the end of the file", ENXIO);
}

}  // namespace varve::version
