// SPDX-License-Identifier: Apache-2.0
#include "version/open_recipe.h"

#include <utility>

namespace varve::version {

OpenRecipe::OpenRecipe(std::shared_ptr<const format::Recipe> recipe)
    : recipe_(std::move(recipe)),
      bytes_(recipe_->bytes()),
      data_bytes_(recipe_->data_bytes()),
      index_(recipe_) {}

Result<std::uint64_t> OpenRecipe::seek(std::uint64_t offset, SeekFor wanted) {
  return seek_in_recipe(index_, bytes_, offset, wanted);
}

Result<restore::RunPart> OpenRecipe::locate(layout::ChunkSource& source,
                                            const restore::FilePosition& place) {
  return locator_.find(source, recipe().runs[place.run], place.run, place.run_offset);
}

std::shared_ptr<restore::ReadHandle> OpenRecipe::handle() const {
  const std::lock_guard lock(mutex_);
  return handle_;
}

void OpenRecipe::keep_handle(std::shared_ptr<restore::ReadHandle> handle) {
  const std::lock_guard lock(mutex_);
  handle_ = std::move(handle);
}

}  // namespace varve::version
