// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "layout/layout.h"
#include "varve/result.h"

namespace varve::restore {

/// Where one chunk lies. `header` is the container's and is valid until the next call.
struct ChunkPlace {
  const format::ContainerHeader* header = nullptr;
  std::uint32_t index = 0;
};

/// Finds chunks one after the other; neighbours cost neither a lookup nor a lock.
/// Not synchronised.
class ChunkResolver {
 public:
  explicit ChunkResolver(layout::ChunkSource* source) : source_(source) {}

  /// kCorrupt if the id is not stored or the container's table says otherwise.
  [[nodiscard]] Result<ChunkPlace> resolve(ChunkId id);
  [[nodiscard]] Result<std::shared_ptr<const format::ContainerHeader>> header(
      std::uint32_t container);

  /// Forgets locations, since chunks may move between two areas.
  void forget();

 private:
  layout::ChunkSource* const source_;
  std::optional<layout::LocationRun> run_;
  std::shared_ptr<const format::ContainerHeader> header_;  // Of run_'s container.
  // A few more headers, for streams that alternate between containers; a ring.
  std::vector<std::shared_ptr<const format::ContainerHeader>> recent_;
  std::size_t oldest_ = 0;
};

/// Errors unless the chunk table of `header` has `id` at `index`.
[[nodiscard]] Result<void> verify_place(const format::ContainerHeader& header, std::uint32_t index,
                                        ChunkId id);

}  // namespace varve::restore
