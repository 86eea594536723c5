// SPDX-License-Identifier: Apache-2.0
// Reads recipes of an open version, whose newest chunks may not be on disk yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "format/recipe.h"
#include "layout/layout.h"
#include "restore/read_service.h"
#include "varve/result.h"
#include "version/open_recipe.h"

namespace varve::version {

/// The position of one chunk in a recipe.
struct RecipeChunk {
  std::size_t run = 0;       ///< Number of the recipe's run.
  std::uint32_t index = 0;   ///< Number of the chunk in the run.
  std::uint64_t offset = 0;  ///< Offset of the chunk's first byte in the file.
  std::uint32_t bytes = 0;   ///< Length of the chunk.
};

/// Reads recipes whose newest chunks may still be in memory. Thread-safe.
class ContentReader {
 public:
  /// Lifetime: `layout` and `service` must outlive the reader.
  ContentReader(layout::Layout& layout, restore::ReadService& service, std::uint64_t version_key)
      : layout_(layout), service_(service), version_key_(version_key) {}

  /// Fills `out` from `offset`. Returns fewer bytes only at the recipe's end.
  [[nodiscard]] Result<std::size_t> read(const std::shared_ptr<const format::Recipe>& recipe,
                                         std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<std::size_t> read(OpenRecipe& recipe, std::uint64_t offset,
                                         std::span<std::byte> out);
  /// Returns the chunk with the byte at `offset`. `offset` must be below the recipe's end and not
  /// in a hole.
  [[nodiscard]] Result<RecipeChunk> chunk_at(OpenRecipe& recipe, std::uint64_t offset);

  /// Returns the raw bytes of one chunk.
  [[nodiscard]] Result<std::vector<std::byte>> chunk(ChunkId id);

  /// Keeps the chunks that end at or before `bytes`. Returns the bytes between the last kept chunk
  /// and `bytes`.
  [[nodiscard]] Result<std::vector<std::byte>> cut(format::Recipe& recipe, std::uint64_t bytes);
  /// Cuts the last hole of the recipe at `bytes`, or removes a hole that begins after `bytes`.
  /// Returns bytes as take_last_chunk() does.
  [[nodiscard]] Result<std::vector<std::byte>> cut_last_hole(format::Recipe& recipe,
                                                             std::uint64_t bytes);
  /// Removes the last chunk from the recipe (unless a hole ends the recipe) and returns the chunk's
  /// bytes. The caller must cut the following bytes as if the file had not ended there.
  [[nodiscard]] Result<std::vector<std::byte>> take_last_chunk(format::Recipe& recipe);

 private:
  [[nodiscard]] Result<std::shared_ptr<restore::ReadHandle>> open(
      std::shared_ptr<const format::Recipe> recipe);
  [[nodiscard]] Result<std::size_t> read_apart(const format::Recipe& recipe, std::uint64_t offset,
                                               std::span<std::byte> out);
  [[nodiscard]] Result<void> read_run_apart(const format::RecipeRun& run, std::uint64_t offset,
                                            std::span<std::byte> out);
  [[nodiscard]] std::optional<std::size_t> read_from_memory(const format::Recipe& recipe,
                                                            std::uint64_t offset,
                                                            std::span<std::byte> out);
  [[nodiscard]] Result<std::uint32_t> chunk_bytes(ChunkId id);
  /// Makes the chunks of a recipe readable by location.
  [[nodiscard]] Result<void> locate_all(const format::Recipe& recipe);

  layout::Layout& layout_;
  restore::ReadService& service_;
  const std::uint64_t version_key_;
  // The service's sessions identify files by the ordinal, so each ordinal must be unique. The
  // distance keeps the sessions from taking two files for neighbours in tree order.
  static constexpr std::uint64_t kOrdinalDistance = std::uint64_t{1} << 20;
  std::atomic<std::uint64_t> last_ordinal_{0};
};

}  // namespace varve::version
