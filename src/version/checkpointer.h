// SPDX-License-Identifier: Apache-2.0
// When and how the changes of an open version become durable.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/recurring_tasks.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "version/content_streams.h"
#include "version/open_contents.h"
#include "version/open_inode.h"
#include "version/open_state.h"
#include "version/open_tree.h"
#include "version/staged_ingest.h"
#include "version/staging_area.h"

namespace varve::version {

/// Makes checkpoints: in the background, when changes take much memory, for fsync(2), and before a
/// seal. A checkpoint makes all earlier changes durable: chunks first, then the catalog's
/// locations, then the overlay (docs/ORDERING.md O1, O2).
///
/// The first change makes the overlay and adds the background task to
/// OpenVersionParts::checkpoint_tasks. Before the first change, the version has no files and no
/// task. Once a checkpoint leaves nothing to do, the task rests until the next change.
///
/// Unless a function says otherwise, the caller holds none of the version's locks.
class Checkpointer {
 public:
  /// The changes not yet durable, lost by a crash.
  struct Unsaved {
    std::size_t entries = 0;  ///< Files and directories with changes.
    std::uint64_t bytes = 0;  ///< Bytes of contents.
  };

  /// Lifetime: every argument must outlive the checkpointer. The owner must call stop() before
  /// destroying the checkpointer.
  Checkpointer(OpenState& state, ContentStreams& streams, StagingArea& staging,
               OpenContents& contents, StagedIngest& ingest);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Continues from the last checkpoint: creates the root if there is none, cuts the open tails,
  /// and queues the staged files. Must be called once, before any other function.
  [[nodiscard]] Result<void> recover(const NewFile& root);

  /// Checks that the version accepts changes, and prepares the version for the first change. The
  /// caller holds OpenState::mutex.
  /// Errors: kReadOnly while the version is frozen.
  [[nodiscard]] Result<void> check_writable();

  /// The extent of a checkpoint. kAll waits for the chunks of files with writes in progress.
  enum class Extent : std::uint8_t { kAtRest, kAll };
  [[nodiscard]] Result<void> checkpoint(Extent extent);
  /// Bounds the memory for changes: makes a checkpoint if there are many changes.
  [[nodiscard]] Result<void> relieve();

  /// See the functions of the same names in OpenVersion.
  [[nodiscard]] Result<void> freeze(SealWriters writers);
  [[nodiscard]] Result<void> freeze_to_drop();
  void thaw();
  void stop();

  /// Returns the accepted bytes not yet on the disk. Takes no lock.
  [[nodiscard]] std::uint64_t unwritten_bytes() const;
  /// Returns the bytes that sealing will write in addition to unwritten_bytes(). Takes no lock.
  [[nodiscard]] std::uint64_t sealing_bytes() const { return sealing_bytes_; }
  /// Stores the chunks in flight, and waits for completion. Takes no lock of the version.
  void store_accepted();
  [[nodiscard]] Unsaved unsaved() const;

 private:
  /// The changes written by one checkpoint.
  struct Taken {
    OpenTree::Changes tree;
    StagingArea::Changes staging;
    std::uint64_t record_bytes = 0;
  };

  // ---- The caller holds OpenState::mutex. ----

  [[nodiscard]] Result<void> recover_root(const NewFile& root);
  /// Makes the overlay and starts the background task, before the first change.
  [[nodiscard]] Result<void> wake_up();
  void start_background();
  [[nodiscard]] Result<OpenTree::Changes::Record> encode(OpenInode& inode, Extent extent);
  void estimate_sealing();
  /// Finishes the content of files open for writing.
  [[nodiscard]] Result<void> end_writing();

  // ---- The caller holds none of the version's locks, or `checkpoint_mutex`. ----

  [[nodiscard]] Result<void> checkpoint_once(Extent extent);
  [[nodiscard]] Result<Taken> take_changes(Extent extent);
  [[nodiscard]] Result<void> store(const Taken& taken);
  [[nodiscard]] Result<void> come_to_rest();
  [[nodiscard]] Result<void> checkpoint_in_turn();
  /// Cuts the queued staged files, and makes a checkpoint if due.
  [[nodiscard]] base::RecurringTasks::Next run_background();
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] base::RecurringTasks::Next rest_if_idle();
  [[nodiscard]] std::chrono::milliseconds interval() const;
  [[nodiscard]] std::uint64_t stored_bytes() const;
  /// Returns whether OpenVersionParts::checkpoint_bytes makes a checkpoint due.
  [[nodiscard]] bool is_grown() const;

  OpenState& state_;
  ContentStreams& streams_;
  StagingArea& staging_;
  OpenContents& contents_;
  StagedIngest& ingest_;
  const std::size_t index_entries_;  // Size of the index at the start.
  std::atomic<std::uint64_t> sealing_bytes_{0};
  bool rests_ = false;  // The task waits for a change. Guarded by OpenState::mutex.
  // The next two members belong to the background task alone, or to start_background() while the
  // task rests.
  base::RecurringTasks::Time next_checkpoint_{};
  std::uint64_t recorded_bytes_ = 0;  // stored_bytes() at the last checkpoint of the task.
};

}  // namespace varve::version
