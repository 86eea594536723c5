// SPDX-License-Identifier: Apache-2.0
// Finds data and holes in recipes, as lseek(2) does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "restore/recipe_index.h"
#include "varve/result.h"

namespace varve::version {

enum class SeekFor : std::uint8_t { kData, kHole };

/// Size of a hole's block, in bytes. A hole has at least one whole block, as on ext4, because
/// programs such as rsync -S leave out single bytes. A block that holds any data is data, with
/// zeros where nothing was written. The last block of a file may be shorter.
constexpr std::uint64_t kHoleBlockBytes = 4096;

[[nodiscard]] constexpr std::uint64_t block_begin(std::uint64_t offset) {
  return offset - offset % kHoleBlockBytes;
}
[[nodiscard]] constexpr std::uint64_t block_end(std::uint64_t offset) {
  return block_begin(offset + kHoleBlockBytes - 1);
}

/// Returns the offset of lseek(2) with SEEK_DATA or SEEK_HOLE by whole blocks, in a file of `size`
/// bytes. Calls `seek(offset, wanted)`, which does the same by single bytes.
template <typename Seek>
[[nodiscard]] Result<std::uint64_t> seek_by_blocks(std::uint64_t size, std::uint64_t offset,
                                                   SeekFor wanted, Seek seek) {
  if (offset >= size) return Error(ErrorCode::kPastEnd, "past the end of the file");
  std::uint64_t at = block_begin(offset);
  if (wanted == SeekFor::kData) {
    VARVE_TRY_ASSIGN(const std::uint64_t data, seek(at, SeekFor::kData));
    return std::max(offset, block_begin(data));
  }
  while (true) {
    VARVE_TRY_ASSIGN(const std::uint64_t hole, seek(at, SeekFor::kHole));
    const std::uint64_t block = block_end(hole);
    if (block >= size) return size;
    auto data = seek(block, SeekFor::kData);
    if (!data && data.error().code() != ErrorCode::kPastEnd) return std::move(data).error();
    if (!data || *data >= block + kHoleBlockBytes) {
      // The bytes from `hole` to `block`, if any, are in a block with data.
      return std::max(offset, block);
    }
    at = *data;
  }
}

/// Returns the offset of lseek(2) with SEEK_DATA or SEEK_HOLE by single bytes, in a file of `size`
/// bytes; the file's end counts as a hole.
/// Errors: kPastEnd past the end, and where no data follows.
[[nodiscard]] inline Result<std::uint64_t> seek_in_recipe(restore::RecipeIndex& recipe,
                                                          std::uint64_t size, std::uint64_t offset,
                                                          SeekFor wanted) {
  const bool data = wanted == SeekFor::kData;
  if (offset < size) {
    const auto found =
        recipe.seek(offset, data ? restore::RunKind::kData : restore::RunKind::kHole);
    if (found) return *found;
    if (!data) return size;
  }
  return Error(ErrorCode::kPastEnd, "past the end of the file");
}

/// Does the same by whole blocks. Recipes of older versions of Varve have holes of single bytes.
[[nodiscard]] inline Result<std::uint64_t> seek_blocks_in_recipe(restore::RecipeIndex& recipe,
                                                                 std::uint64_t size,
                                                                 std::uint64_t offset,
                                                                 SeekFor wanted) {
  return seek_by_blocks(size, offset, wanted, [&](std::uint64_t at, SeekFor what) {
    return seek_in_recipe(recipe, size, at, what);
  });
}

}  // namespace varve::version
