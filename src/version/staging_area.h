// SPDX-License-Identifier: Apache-2.0
// The staging files of an open version: bytes written out of order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ingest/ingest_pipeline.h"
#include "varve/result.h"
#include "version/open_inode.h"
#include "version/open_state.h"
#include "version/staged_content.h"
#include "version/staging_file.h"

namespace varve::version {

/// The folder of staging files, and the queue of files waiting for cutting.
///
/// A staging file has the name INO-GENERATION, both in hexadecimal digits. No two staging files
/// have the same generation. An unused staging file stays until the next checkpoint: the records of
/// the last checkpoint may still name the file.
///
/// Unless a function says otherwise, the caller holds OpenState::mutex.
class StagingArea {
 public:
  /// A new staging file, not yet used by an inode.
  struct NewContent {
    std::uint64_t generation = 0;
    std::unique_ptr<StagedContent> ranges;
    std::shared_ptr<StagingFile> file;
  };

  /// Lifetime: `state` must outlive the object.
  explicit StagingArea(OpenState& state);
  StagingArea(const StagingArea&) = delete;
  StagingArea& operator=(const StagingArea&) = delete;

  // ---- One inode. ----

  /// Creates a staging file for content at rest. The ranges refer to the recipe; the file gets the
  /// tail.
  [[nodiscard]] Result<NewContent> create(const OpenInode& inode, const ingest::Content& content);
  /// Makes a new staging file the inode's content. The inode must have no other content.
  void adopt(OpenInode& inode, NewContent content);
  /// Opens the inode's staging file, if not open.
  [[nodiscard]] Result<void> open_file(OpenInode& inode);
  /// Writes to the staging file, and records the range.
  [[nodiscard]] Result<void> write(OpenInode& inode, std::uint64_t offset,
                                   std::span<const std::byte> data);
  /// Returns the bytes used in the staging folder by a write of `written` bytes.
  [[nodiscard]] std::uint64_t bytes_for(std::uint64_t written) const;
  /// Ends the staging of a staged inode. The next checkpoint removes the file.
  void drop(OpenInode& inode);
  /// Errors: kIo if the disk failed to keep the file's bytes.
  [[nodiscard]] static Result<void> check(const OpenInode& inode);

  // ---- The queue of files waiting for cutting. ----

  void queue(Ino ino) { queue_.push_back(ino); }
  void queue(const std::vector<Ino>& inodes);
  [[nodiscard]] bool has_queued() const { return !queue_.empty(); }
  /// Removes the first file from the queue and returns the file. The queue must not be empty.
  [[nodiscard]] Ino take_first();

  /// Returns the bytes of all staging files: cutting stores them a second time. Needs no lock.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // ---- Checkpoints and recovery. ----

  /// The part of the staging area in one checkpoint.
  struct Changes {
    std::vector<std::pair<Ino, std::uint64_t>> to_sync;  ///< Inodes with the generations.
    std::vector<std::string> obsolete;                   ///< Files to remove afterwards.
  };
  /// Notes that the next checkpoint must sync the inode's staging file.
  void sync_later(Ino ino) { unsynced_.push_back(ino); }
  [[nodiscard]] Changes take_changes();
  /// Syncs the files and their names. The caller does not hold OpenState::mutex.
  [[nodiscard]] Result<void> sync(const Changes& changes);
  /// Removes the obsolete files after the checkpoint's commit.
  void settle(const Changes& changes);
  /// Keeps the changes of a failed checkpoint for the next checkpoint.
  void restore(const Changes& changes);
  /// Queues the staged files named in the overlay, and removes all other staging files.
  [[nodiscard]] Result<void> recover();

 private:
  [[nodiscard]] std::string path(Ino ino, std::uint64_t generation) const;
  [[nodiscard]] StagingPlace place(Ino ino, std::uint64_t generation) const;
  [[nodiscard]] Result<void> sync_file(Ino ino, std::uint64_t generation);
  void count(OpenInode& inode);

  OpenState& state_;
  const std::string directory_;
  std::deque<Ino> queue_;
  std::vector<std::string> obsolete_;
  std::vector<Ino> unsynced_;
  std::uint64_t last_generation_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace varve::version
