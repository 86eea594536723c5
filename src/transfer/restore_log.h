// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::transfer {

/// The progress of a restore: all entries before `rank`, and the bytes before `offset` of the file
/// with this rank.
struct RestorePoint {
  Rank rank = 0;
  std::uint64_t offset = 0;
};

/// The log that lets an interrupted restore continue. It is a small file in the target directory.
/// Each line has a checksum, so that a reader ignores a torn line. The caller adds a point only
/// after everything before it is on disk. Not thread-safe, except that one thread may call
/// sync_target() and add() while others call the const functions.
///
/// Source: the restore recovery log of ALACC (Cao et al., FAST 2018). We differ by a sync of the
/// target instead of writes past the page cache. A point names the file and the offset in it, from
/// which the recipe gives the chunk. The engine rebuilds its window and cache, so their sizes are
/// not recorded.
class RestoreLog {
 public:
  /// Reads the log `name` in the directory, if it has this `identity` and belongs to this user.
  /// `identity`: a line that names the version and the selected part of it. The descriptor must
  /// stay open.
  RestoreLog(int directory_fd, std::string name, std::string identity);

  /// Returns whether the constructor found the log of an interrupted restore with the same
  /// identity.
  [[nodiscard]] bool resumes() const { return resumes_; }
  /// Return the last point and the one before it. The restore reads the data between the two again
  /// and compares it.
  [[nodiscard]] const RestorePoint& last() const { return last_; }
  [[nodiscard]] const RestorePoint& verified() const { return before_last_; }
  /// Returns the start of the restore, in seconds since 1970 by the target's clock.
  [[nodiscard]] std::int64_t started_at() const { return started_at_; }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the name of an entry until it is complete.
  [[nodiscard]] std::string temporary_name(Rank rank) const;
  [[nodiscard]] bool is_temporary_name(const std::string& name) const;

  /// Creates the log durably unless it exists. Call it before the first use of a temporary name.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] bool started() const { return fd_.valid(); }
  /// Syncs the target's file system.
  [[nodiscard]] Result<void> sync_target();
  /// Appends the point durably. Shortens a long log to its last points.
  [[nodiscard]] Result<void> add(const RestorePoint& point);
  /// Notes durably that this restore makes the repository in a new directory of the target, before
  /// the directory looks like one. Call it only while no other thread uses the log.
  [[nodiscard]] Result<void> note_repository(Rank rank, ino_t inode);
  /// Returns whether the interrupted restore noted this directory.
  [[nodiscard]] bool made_repository(Rank rank, ino_t inode) const;
  /// Removes the log of a complete restore.
  [[nodiscard]] Result<void> remove();

 private:
  void read();
  [[nodiscard]] std::string head() const;
  [[nodiscard]] Result<void> shorten(const std::string& line);
  [[nodiscard]] Result<void> append(const std::string& payload);

  const int directory_fd_;
  const std::string name_;
  const std::string identity_;
  std::string token_;  // Distinguishes this restore's temporary files from all other files.
  base::UniqueFd fd_;
  bool resumes_ = false;
  bool stale_ = false;     // True if the file is the obsolete log of another restore.
  std::size_t bytes_ = 0;  // Length of the log.
  RestorePoint last_;
  RestorePoint before_last_;
  std::array<RestorePoint, 2> newest_;  // The last points, of this run too.
  std::int64_t started_at_ = 0;
  std::vector<std::pair<Rank, ino_t>> repositories_;  // The noted directories.
};

}  // namespace varve::transfer
