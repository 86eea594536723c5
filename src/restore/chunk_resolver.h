// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "layout/layout.h"
#include "varve/result.h"

namespace varve::restore {

/// The place of one chunk. `header` belongs to the chunk's container and is valid until the next
/// call.
struct ChunkPlace {
  const format::ContainerHeader* header = nullptr;
  std::uint32_t index = 0;
};

/// Finds the containers of chunks for the engine, one chunk after the other. A neighbour of the
/// last chunk costs neither a lookup nor a lock. Not thread-safe.
class ChunkResolver {
 public:
  explicit ChunkResolver(layout::ChunkSource* source) : source_(source) {}

  /// Returns the place of a chunk.
  /// Errors: kCorrupt if the id is not stored or the container's table disagrees.
  [[nodiscard]] Result<ChunkPlace> resolve(ChunkId id);
  [[nodiscard]] Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container);

  /// Forgets all locations. The engine calls forget() before each area, because chunks may have
  /// moved.
  void forget();

 private:
  layout::ChunkSource* const source_;
  std::optional<layout::LocationRun> run_;
  std::shared_ptr<const format::ContainerHeader> header_;  // Header of run_'s container.
  // A ring with the headers of a few more containers, for streams alternating between containers.
  std::vector<std::shared_ptr<const format::ContainerHeader>> recent_;
  std::size_t oldest_ = 0;
};

/// Checks that the chunk table of `header` has `id` at `index`. Errors: kCorrupt.
[[nodiscard]] Result<void> verify_place(const format::ContainerHeader& header, std::uint32_t index,
                                        ChunkId id);

}  // namespace varve::restore
