// SPDX-License-Identifier: Apache-2.0
// Cuts the staged files of an open version into chunks.
#pragma once

#include <cstdint>
#include <mutex>

#include "format/recipe.h"
#include "varve/result.h"
#include "version/content_streams.h"
#include "version/open_contents.h"
#include "version/open_inode.h"
#include "version/open_state.h"
#include "version/staged_content.h"
#include "version/staging_area.h"

namespace varve::version {

/// Brings staged files to rest. The content is cut without OpenState::mutex, from a copy of the
/// ranges. If the file changed meanwhile, the file stays staged.
///
/// Unless a function says otherwise, the caller holds none of the version's locks.
class StagedIngest {
 public:
  /// Lifetime: every argument must outlive the object.
  StagedIngest(OpenState& state, ContentStreams& streams, StagingArea& staging,
               OpenContents& contents)
      : state_(state), streams_(streams), staging_(staging), contents_(contents) {}
  StagedIngest(const StagedIngest&) = delete;
  StagedIngest& operator=(const StagedIngest&) = delete;

  /// Returns a recipe for the content, with only chunks that the version may refer to. `file` is
  /// the staging file; may be null if no range is in a staging file. The caller holds
  /// OpenState::references_mutex shared, and does not hold OpenState::mutex.
  [[nodiscard]] Result<format::Recipe> cut(const StagedContent& content, StagingFile* file);

  enum class Users : std::uint8_t { kNone, kAny };
  /// Cuts a staged file. With kNone, only if no handle writes the file; with kAny, writers wait.
  [[nodiscard]] Result<void> ingest(Ino ino, Users users);
  /// Cuts the files of the queue. After a failed cut, a file goes back into the queue. Returns the
  /// first error.
  [[nodiscard]] Result<void> ingest_all();

  /// Returns whether the file must be cut while open, so that the staging folder and the ranges in
  /// memory stay bounded. The caller holds OpenState::mutex.
  [[nodiscard]] static bool wants_consolidating(const OpenInode& inode);
  /// Cuts an open file. The file's writers wait meanwhile; writers of other files do not.
  void consolidate(Ino ino);

 private:
  OpenState& state_;
  ContentStreams& streams_;
  StagingArea& staging_;
  OpenContents& contents_;
  std::mutex mutex_;  // Held by the one thread that cuts the queue; sealing waits.
};

}  // namespace varve::version
