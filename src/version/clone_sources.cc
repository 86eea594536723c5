// SPDX-License-Identifier: Apache-2.0
#include "version/clone_sources.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "version/staged_content.h"

namespace varve::version {

// A version may refer to its own chunks and to its neighbour's chunks (MFDedup, FAST'21 section
// 3.1: only adjacent versions share a chunk).
Result<std::shared_ptr<const format::Recipe>> CloneSources::reachable(
    const std::shared_ptr<const format::Recipe>& recipe) {
  const bool all = std::ranges::all_of(recipe->runs, [&](const format::RecipeRun& run) {
    return run.is_hole() || state_.parts.index->covers(run.first, run.count) == run.count;
  });
  if (all) return recipe;
  if (auto* const space = state_.parts.space) VARVE_TRY(space->before_write(recipe->data_bytes()));
  VARVE_TRY(state_.admit(recipe->data_bytes()));
  const StagedContent content(std::make_shared<OpenRecipe>(recipe));
  VARVE_TRY_ASSIGN(auto copy, ingest_.cut(content, nullptr));
  return std::make_shared<const format::Recipe>(std::move(copy));
}

Result<std::shared_ptr<OpenRecipe>> CloneSources::sealed(
    const std::shared_ptr<const format::Recipe>& recipe) {
  {
    const std::lock_guard lock(state_.mutex);
    if (last_source_ == recipe) return last_;
  }
  VARVE_TRY_ASSIGN(const auto usable, reachable(recipe));
  auto open = std::make_shared<OpenRecipe>(usable);
  const std::lock_guard lock(state_.mutex);
  last_source_ = recipe;
  last_ = open;
  return open;
}

Result<std::shared_ptr<OpenRecipe>> CloneSources::at_rest(Ino ino) {
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
  if (inode->staging.is_staged() || (inode->content.stream && inode->writers != 0)) {
    return Error(ErrorCode::kUnsupported, "the file is being written");
  }
  VARVE_TRY(streams_.come_to_rest(*inode));
  if (last_source_ != inode->content.recipe) {
    last_ = std::make_shared<OpenRecipe>(inode->content.recipe);
    last_source_ = inode->content.recipe;
  }
  return last_;
}

void CloneSources::forget() {
  last_source_.reset();
  last_.reset();
}

}  // namespace varve::version
