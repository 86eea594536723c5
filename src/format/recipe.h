// SPDX-License-Identifier: Apache-2.0
// The recipe: a file's content as runs of consecutive chunk ids, and holes.
// docs/FORMAT.md §5.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/coding.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// `count` chunks from `first`, `bytes` long together; a hole if count is 0.
struct RecipeRun {
  ChunkId first;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  [[nodiscard]] bool is_hole() const { return count == 0; }
  bool operator==(const RecipeRun&) const = default;
};

struct Recipe {
  std::vector<RecipeRun> runs;

  /// The file's size, and its part that is not hole.
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t data_bytes() const;
  /// Adds a chunk at the end; joins it to the last run where the ids follow each other.
  void append_chunk(ChunkId id, std::uint32_t bytes);
  void append_run(const RecipeRun& run);
  void append_hole(std::uint64_t bytes);
  bool operator==(const Recipe&) const = default;
};

/// Appends the recipe's bytes to `out`. Ids are coded relative to `base`, which is then set
/// to the id after the last run: recipes that follow each other cost few bytes.
void encode_recipe(const Recipe& recipe, ChunkId& base, std::string& out);
/// Reads what encode_recipe wrote. The reader fails on malformed input (check its ok()), and on
/// runs or holes that a writer would have joined.
[[nodiscard]] Recipe decode_recipe(base::ByteReader& reader, ChunkId& base);

}  // namespace varve::format
