// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "format/recipe.h"
#include "layout/layout.h"
#include "varve/result.h"

namespace varve::restore {

/// The part of a recipe's run that stands in one container.
struct RunPart {
  std::uint32_t chunk = 0;  ///< Place of its first chunk in the run.
  std::uint32_t count = 0;
  std::uint64_t offset = 0;  ///< Of its first byte in the run.
  std::uint64_t bytes = 0;
  std::uint32_t container = 0;
  std::uint32_t index = 0;  ///< Of its first chunk in the container's table.
};

/// Finds where a byte of a run lies. Chunk lengths stand in the containers, so the run is
/// walked container by container; a few places of the run that was walked last are kept.
/// Thread-safe.
class RunLocator {
 public:
  /// The part that holds byte `offset` (below run.bytes) of the run with number `run_number`
  /// in its recipe. Containers that are passed over need no undamaged header.
  [[nodiscard]] Result<RunPart> find(layout::ChunkSource& source, const format::RecipeRun& run,
                                     std::size_t run_number, std::uint64_t offset);

 private:
  struct Mark {
    std::uint32_t chunk = 0;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] Mark nearest(std::size_t run_number, std::uint64_t offset);
  void keep(std::size_t run_number, Mark mark);

  std::mutex mutex_;  // Never held during I/O.
  std::size_t marked_run_ = 0;
  std::vector<Mark> marks_;  // Ascending.
};

}  // namespace varve::restore
