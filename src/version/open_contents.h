// SPDX-License-Identifier: Apache-2.0
// The contents of an open version's files: the state machine of one inode's content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ingest/ingest_pipeline.h"
#include "io/file_system.h"
#include "varve/result.h"
#include "version/content_reader.h"
#include "version/content_streams.h"
#include "version/open_inode.h"
#include "version/open_state.h"
#include "version/recipe_seek.h"
#include "version/removed_inodes.h"
#include "version/staged_content.h"
#include "version/staging_area.h"
#include "version/staging_file.h"

namespace varve::version {

/// A range to copy between two files.
struct CloneRange {
  std::uint64_t offset = 0;         ///< Offset in the file that changes.
  std::uint64_t source_offset = 0;  ///< Offset in the source.
  std::uint64_t bytes = 0;
};

/// Reads and writes the contents of files. Each file is in one of three states (see OpenInode):
///
///     at rest   -- write at the end, grow, shrink -->                       streaming
///     streaming -- last writer closes, all chunks have a place -->          at rest
///     at rest, streaming -- write before the end, punch, clone a range,
///                           or read while a handle may write -->            staged
///     staged    -- the file is cut (StagedIngest) -->                       at rest
///     any       -- truncate to 0, clone a whole file -->                    at rest
///
/// The caller of a function with an OpenInode parameter holds OpenState::mutex; the functions with
/// an Ino parameter lock OpenState::mutex, unless a comment says otherwise.
class OpenContents {
 public:
  /// Lifetime: every argument must outlive the object.
  OpenContents(OpenState& state, ContentStreams& streams, StagingArea& staging,
               RemovedInodes& removed)
      : state_(state), streams_(streams), staging_(staging), removed_(removed) {}
  OpenContents(const OpenContents&) = delete;
  OpenContents& operator=(const OpenContents&) = delete;

  // ---- Changes. The caller holds OpenState::mutex. ----

  /// Waits until no thread cuts the inode's content, then returns the inode. `lock` holds
  /// OpenState::mutex; the wait releases the mutex.
  /// Errors: kReadOnly if the version was frozen during the wait.
  [[nodiscard]] Result<OpenInode*> wait_until_uncut(std::unique_lock<std::mutex>& lock, Ino ino);
  /// Writes all of `data` or fails. Errors: kTooLarge; kNoSpace, with nothing written.
  [[nodiscard]] Result<void> write(OpenInode& inode, std::uint64_t offset,
                                   std::span<const std::byte> data);
  /// Cuts or grows the file. Without a writer, the content then comes to rest.
  [[nodiscard]] Result<void> truncate(OpenInode& inode, std::uint64_t bytes);
  /// Turns a range into a hole. Does not change the size.
  [[nodiscard]] Result<void> punch(OpenInode& inode, std::uint64_t begin, std::uint64_t end);
  /// Copies a range of `source`, up to the end of `source`. Returns the number of bytes. The caller
  /// holds OpenState::references_mutex shared.
  [[nodiscard]] Result<std::uint64_t> clone_range(OpenInode& inode,
                                                  std::shared_ptr<OpenRecipe> source,
                                                  const CloneRange& range);
  /// Makes the content empty. Does not change `inode.size`.
  void drop(OpenInode& inode);
  /// Drops the inode if the inode has no name and no user.
  void drop_unused(OpenInode& inode);
  /// Drops the unused inodes among the inodes noted by RemovedInodes::forget().
  void drop_forgotten();
  /// Returns whether a removed file is still in use, or waits for drop_forgotten().
  [[nodiscard]] bool waits_for_removed() const { return removed_.any(); }

  // ---- Handles. ----

  /// Counts a handle. The caller holds OpenState::mutex.
  /// Errors: kIsDirectory; kInvalid for an inode of another type than a regular file.
  [[nodiscard]] Result<void> add_handle(Ino ino, bool writer);
  /// Ends a handle. At the end of the last writer's handle, the content comes to rest.
  void release(Ino ino, bool writer);
  /// Fills `out`, up to the file's end. Returns the number of bytes.
  [[nodiscard]] Result<std::size_t> read(Ino ino, std::uint64_t offset, std::span<std::byte> out);
  /// Returns an offset as seek_by_blocks() does.
  [[nodiscard]] Result<std::uint64_t> seek(Ino ino, std::uint64_t offset, SeekFor wanted);

 private:
  [[nodiscard]] Result<void> resize(OpenInode& inode, std::uint64_t bytes);
  [[nodiscard]] Result<void> stage(OpenInode& inode);
  [[nodiscard]] Result<void> stage_for_reading(OpenInode& inode);
  [[nodiscard]] std::shared_ptr<OpenRecipe> at_rest(const OpenInode& inode);
  // read_content() and read_staged() need no lock.
  [[nodiscard]] Result<std::size_t> read_content(const ingest::Content& content,
                                                 std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<std::size_t> read_staged(const std::vector<StagedContent::Range>& ranges,
                                                StagingFile* file, std::span<std::byte> out);

  OpenState& state_;
  ContentStreams& streams_;
  StagingArea& staging_;
  RemovedInodes& removed_;
  std::shared_ptr<OpenRecipe> at_rest_;  // Last result of at_rest(). Guarded by OpenState::mutex.
};

}  // namespace varve::version
