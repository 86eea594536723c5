// SPDX-License-Identifier: Apache-2.0
// Recipes that a clone in an open version may refer to.
#pragma once

#include <memory>

#include "format/recipe.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "version/content_reader.h"
#include "version/content_streams.h"
#include "version/open_state.h"
#include "version/staged_ingest.h"

namespace varve::version {

/// Turns the source of a clone into a recipe whose chunks the open version may refer to. Remembers
/// the last source, because a program clones a large file in several calls.
///
/// For each function but forget(), the caller holds OpenState::references_mutex shared until an
/// inode has the result.
class CloneSources {
 public:
  /// Lifetime: every argument must outlive the object.
  CloneSources(OpenState& state, ContentStreams& streams, StagedIngest& ingest)
      : state_(state), streams_(streams), ingest_(ingest) {}
  CloneSources(const CloneSources&) = delete;
  CloneSources& operator=(const CloneSources&) = delete;

  /// Returns `recipe` itself if the version may refer to all chunks of the recipe. Otherwise
  /// returns a recipe with copies of the unreachable chunks. The caller does not hold
  /// OpenState::mutex.
  [[nodiscard]] Result<std::shared_ptr<const format::Recipe>> reachable(
      const std::shared_ptr<const format::Recipe>& recipe);
  /// Returns the recipe of reachable() with its indexes. The caller does not hold OpenState::mutex.
  [[nodiscard]] Result<std::shared_ptr<OpenRecipe>> sealed(
      const std::shared_ptr<const format::Recipe>& recipe);
  /// Returns the recipe of a file of the version. The caller holds OpenState::mutex.
  /// Errors: kUnsupported for a file with writes in progress: the caller copies the bytes instead.
  [[nodiscard]] Result<std::shared_ptr<OpenRecipe>> at_rest(Ino ino);
  /// Forgets the last source. The caller holds OpenState::mutex.
  void forget();

 private:
  OpenState& state_;
  ContentStreams& streams_;
  StagedIngest& ingest_;
  std::shared_ptr<const format::Recipe> last_source_;
  std::shared_ptr<OpenRecipe> last_;
};

}  // namespace varve::version
