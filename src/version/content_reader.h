// SPDX-License-Identifier: Apache-2.0
// Reads recipes of an open version, whose newest chunks may not be on disk yet.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "format/recipe.h"
#include "layout/layout.h"
#include "restore/read_service.h"
#include "varve/result.h"

namespace varve::version {

/// Thread-safe.
class ContentReader {
 public:
  /// Both must outlive the reader.
  ContentReader(layout::Layout& layout, restore::ReadService& service, std::uint64_t version_key)
      : layout_(layout), service_(service), version_key_(version_key) {}

  /// Fills `out` from `offset`; fewer bytes only at the recipe's end.
  [[nodiscard]] Result<std::size_t> read(const std::shared_ptr<const format::Recipe>& recipe,
                                         std::uint64_t offset, std::span<std::byte> out);

  /// The raw bytes of one chunk.
  [[nodiscard]] Result<std::vector<std::byte>> chunk(ChunkId id);

  /// Keeps the chunks that end at or before `bytes`; returns the bytes between the last kept
  /// chunk and `bytes`.
  [[nodiscard]] Result<std::vector<std::byte>> cut(format::Recipe& recipe, std::uint64_t bytes);
  /// Takes the last chunk off the recipe (if it is no hole) and returns its bytes: what
  /// follows must be cut as if the file had not ended there.
  [[nodiscard]] Result<std::vector<std::byte>> take_last_chunk(format::Recipe& recipe);

 private:
  [[nodiscard]] std::optional<std::size_t> read_from_memory(const format::Recipe& recipe,
                                                            std::uint64_t offset,
                                                            std::span<std::byte> out);
  [[nodiscard]] Result<std::uint32_t> chunk_bytes(ChunkId id);

  layout::Layout& layout_;
  restore::ReadService& service_;
  const std::uint64_t version_key_;
};

}  // namespace varve::version
