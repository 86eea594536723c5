// SPDX-License-Identifier: Apache-2.0
// The content of one regular file of an open version.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "format/dir_node.h"
#include "format/recipe.h"
#include "ingest/ingest_pipeline.h"

namespace varve::version {

/// The content of a regular file of an open version. Guarded by OpenState::mutex.
///
/// The content is in one of three states (OpenContents changes them):
///
/// | state     | holds the content                                                          |
/// |-----------|----------------------------------------------------------------------------|
/// | at rest   | `recipe`                                                                   |
/// | streaming | `stream`, which took over the recipe                                       |
/// | staged    | InodeStaging: ranges of recipes and of a file in the staging folder        |
struct InodeContent {
  std::uint64_t size = 0;
  std::uint64_t hole_bytes = 0;  ///< Bytes in holes, if not staged.
  /// Recipe of the content. Null only in a file of the base whose long recipe is not loaded yet;
  /// ContentStreams::load_recipe() then loads the recipe by `recipe_id`.
  std::shared_ptr<const format::Recipe> recipe;
  format::NodeId recipe_id{};
  ingest::IngestPipeline::StreamPtr stream;  ///< Null unless streaming.
  bool stream_finished = false;              ///< True if the stream takes no more bytes.
  bool ends_in_hole = false;                 ///< True if the stream's last input is a hole.

  /// Sets the recipe, and the bytes in holes by the recipe.
  void set_recipe(format::Recipe made);
  /// Sets an empty recipe, because the content moves to a stream, to staging, or away.
  void clear_recipe() { recipe = std::make_shared<const format::Recipe>(); }
  /// Returns whether the stream takes more bytes.
  [[nodiscard]] bool has_growing_stream() const { return stream && !stream_finished; }
  /// Forgets the stream. The caller has taken or discarded the stream's content.
  void end_stream();
};

}  // namespace varve::version
