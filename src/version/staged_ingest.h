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

/// Brings staged files to rest. The content is cut without OpenState::mutex, from a copy of its
/// ranges. If the file changed meanwhile, it stays staged.
///
/// Unless a function says otherwise, the caller holds none of the version's locks.
class StagedIngest {
 public:
  /// Lifetime: every argument must outlive this object.
  StagedIngest(OpenState& state, ContentStreams& streams, StagingArea& staging,
               OpenContents& contents)
      : state_(state), streams_(streams), staging_(staging), contents_(contents) {}
  StagedIngest(const StagedIngest&) = delete;
  StagedIngest& operator=(const StagedIngest&) = delete;

  /// Returns a recipe for the content, of chunks that this version may refer to. `file` is the
  /// staging file; it may be null if no range is in one. The caller holds
  /// OpenState::references_mutex shared, and does not hold OpenState::mutex.
  [[nodiscard]] Result<format::Recipe> cut(const StagedContent& content, StagingFile* file);

  enum class Users : std::uint8_t { kNone, kAny };
  /// Cuts a staged file. With kNone, only if no handle writes it; with kAny, its writers wait.
  [[nodiscard]] Result<void> ingest(Ino ino, Users users);
  /// Cuts the files of the queue. Files that cannot be cut go back into it. Returns the first
  /// error.
  [[nodiscard]] Result<void> ingest_all();

  /// Returns whether the file must be cut while it is open, so that the staging folder and the
  /// ranges in memory stay bounded. The caller holds OpenState::mutex.
  [[nodiscard]] static bool wants_consolidating(const OpenInode& inode);
  /// Cuts a file that is open. Its writers wait meanwhile; writers of other files do not.
  void consolidate(Ino ino);

 private:
  OpenState& state_;
  ContentStreams& streams_;
  StagingArea& staging_;
  OpenContents& contents_;
  std::mutex mutex_;  // One thread cuts the queue; sealing waits for it.
};

}  // namespace varve::version
