// SPDX-License-Identifier: Apache-2.0
// Where a file is cut into chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "varve/result.h"

namespace varve::ingest {

struct ChunkSizes {
  std::uint32_t min = 2048;
  std::uint32_t avg = 8192;
  std::uint32_t max = 65536;
};

/// Finds content-defined boundaries. Stateless and thread-safe: the length of the next chunk
/// is a pure function of the bytes from the last boundary on.
class Chunker {
 public:
  virtual ~Chunker() = default;

  /// Length of the chunk that starts at data[0], in (0, sizes().max].
  /// `data` must hold sizes().max bytes, or all that is left of the file; it may hold more.
  [[nodiscard]] virtual std::size_t next(std::span<const std::byte> data) const = 0;

  [[nodiscard]] virtual ChunkSizes sizes() const = 0;
  /// The id that stands in the superblock.
  [[nodiscard]] virtual std::string_view id() const = 0;
};

/// Ids: "gear16", "fastcdc2020". kUnsupported for another id, kInvalid for odd sizes.
[[nodiscard]] Result<std::unique_ptr<Chunker>> make_chunker(std::string_view id, ChunkSizes sizes);

}  // namespace varve::ingest
