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

/// A run of `count` chunks from `first`, together `bytes` long; a hole if count is 0.
struct RecipeRun {
  ChunkId first;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  [[nodiscard]] bool is_hole() const { return count == 0; }
  bool operator==(const RecipeRun&) const = default;
};

struct Recipe {
  std::vector<RecipeRun> runs;

  /// Return the file's size, with and without holes, in bytes.
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t data_bytes() const;
  /// Adds a chunk at the end; joins the chunk to the last run if the ids are consecutive.
  void append_chunk(ChunkId id, std::uint32_t bytes);
  void append_run(const RecipeRun& run);
  void append_hole(std::uint64_t bytes);
  bool operator==(const Recipe&) const = default;
};

/// Appends the encoded recipe to `out`. Encodes ids relative to `base` and then sets `base` to the
/// id after the last run, so consecutive recipes take few bytes.
void encode_recipe(const Recipe& recipe, ChunkId& base, std::string& out);
/// Decodes the output of encode_recipe(). Fails the reader (the caller checks ok()) on malformed
/// input, and on runs or holes that a writer would have joined.
[[nodiscard]] Recipe decode_recipe(base::ByteReader& reader, ChunkId& base);

}  // namespace varve::format
