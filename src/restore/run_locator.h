// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/ids.h"
#include "format/recipe.h"
#include "layout/layout.h"
#include "varve/result.h"

namespace varve::restore {

/// The part of a recipe's run within one container.
struct RunPart {
  std::uint32_t chunk = 0;  ///< Index of the first chunk of the part in the run.
  std::uint32_t count = 0;
  std::uint64_t offset = 0;  ///< Offset of the first byte of the part in the run.
  std::uint64_t bytes = 0;
  ContainerNumber container{};
  std::uint32_t index = 0;  ///< Index of the first chunk of the part in the container's table.
  ChunkId stored;           ///< Id of the first chunk of the part in the container's table.
};

/// Finds the container that holds a byte of a run. Only containers record the lengths of chunks, so
/// the locator walks through the run container by container. Remembers some places of the last run.
/// Thread-safe.
class RunLocator {
 public:
  /// Returns the part that holds byte `offset` (below run.bytes) of run `run_number` of the recipe.
  /// Containers on the way may have damaged headers.
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
  std::vector<Mark> marks_;  // Places in the last run, ascending.
};

}  // namespace varve::restore
