// SPDX-License-Identifier: Apache-2.0
// A recipe in use by an open version.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "format/recipe.h"
#include "layout/layout.h"
#include "restore/read_service.h"
#include "restore/recipe_index.h"
#include "restore/run_locator.h"
#include "varve/result.h"
#include "version/recipe_seek.h"

namespace varve::version {

/// A recipe with the indexes for fast reads in any order. Thread-safe.
class OpenRecipe {
 public:
  explicit OpenRecipe(std::shared_ptr<const format::Recipe> recipe);

  [[nodiscard]] const format::Recipe& recipe() const { return index_.recipe(); }
  [[nodiscard]] const std::shared_ptr<const format::Recipe>& shared() const { return recipe_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t data_bytes() const { return data_bytes_; }
  /// Returns the run with the byte at `offset`. `offset` must be below bytes().
  [[nodiscard]] restore::FilePosition find(std::uint64_t offset) { return index_.find(offset); }
  /// Returns an offset as seek_in_recipe() does.
  [[nodiscard]] Result<std::uint64_t> seek(std::uint64_t offset, SeekFor wanted);
  /// Returns an offset as seek_by_blocks() does.
  [[nodiscard]] Result<std::uint64_t> seek_blocks(std::uint64_t offset, SeekFor wanted) {
    return seek_blocks_in_recipe(index_, bytes_, offset, wanted);
  }
  /// Returns the part of the run inside one container, with the byte at `place`.
  [[nodiscard]] Result<restore::RunPart> locate(layout::ChunkSource& source,
                                                const restore::FilePosition& place);

  /// Returns the handle of the last keep_handle(); null before the first call.
  [[nodiscard]] std::shared_ptr<restore::ReadHandle> handle() const;
  /// Keeps a handle on the recipe for later reads.
  void keep_handle(std::shared_ptr<restore::ReadHandle> handle);

 private:
  const std::shared_ptr<const format::Recipe> recipe_;
  const std::uint64_t bytes_;
  const std::uint64_t data_bytes_;
  restore::RecipeIndex index_;
  restore::RunLocator locator_;
  mutable std::mutex mutex_;  // Guards handle_.
  std::shared_ptr<restore::ReadHandle> handle_;
};

}  // namespace varve::version
