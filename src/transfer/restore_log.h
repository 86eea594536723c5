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
/// with the rank.
struct RestorePoint {
  Rank rank = 0;
  std::uint64_t offset = 0;
};

/// The log for continuing an interrupted restore: a small file in the target directory. Each line
/// has a checksum, so a reader ignores a torn line. The caller adds a point only after everything
/// before the point is on disk. Not thread-safe, with an exception: a thread may call sync_target()
/// and add() while other threads call the const functions.
///
/// Source: the restore recovery log of ALACC (Cao et al., FAST 2018). We differ by a sync of the
/// target instead of writes past the page cache. A point names the file and the offset in the file,
/// and the recipe gives the chunk. The engine rebuilds the window and the cache, so both sizes are
/// not recorded.
class RestoreLog {
 public:
  /// Reads the log `name` in the directory, if the log has the given `identity` and belongs to the
  /// user of the process. `identity`: a line naming the version and the selected part of the
  /// version. The descriptor must stay open.
  RestoreLog(int directory_fd, std::string name, std::string identity);

  /// Returns whether the constructor found the log of an interrupted restore with the same
  /// identity.
  [[nodiscard]] bool resumes() const { return resumes_; }
  /// Return the last point and the point before. The restore reads the data between the two points
  /// again and compares the data.
  [[nodiscard]] const RestorePoint& last() const { return last_; }
  [[nodiscard]] const RestorePoint& verified() const { return before_last_; }
  /// Returns the start of the restore, in seconds since 1970 by the target's clock.
  [[nodiscard]] std::int64_t started_at() const { return started_at_; }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the name of an entry until the entry is complete.
  [[nodiscard]] std::string temporary_name(Rank rank) const;
  [[nodiscard]] bool is_temporary_name(const std::string& name) const;

  /// Creates the log durably unless the log exists. Must be called before the first use of a
  /// temporary name.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] bool started() const { return fd_.valid(); }
  /// Syncs the target's file system.
  [[nodiscard]] Result<void> sync_target();
  /// Appends the point durably. Shortens a long log to the last points.
  [[nodiscard]] Result<void> add(const RestorePoint& point);
  /// Notes durably that the restore makes the repository in a new directory of the target, before a
  /// repository can be recognized in the directory. Must be called only while no other thread uses
  /// the log.
  [[nodiscard]] Result<void> note_repository(Rank rank, ino_t inode);
  /// Returns whether the interrupted restore noted the directory.
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
  std::string token_;  // Distinguishes the restore's temporary files from all other files.
  base::UniqueFd fd_;
  bool resumes_ = false;
  bool stale_ = false;     // True if the file is the obsolete log of another restore.
  std::size_t bytes_ = 0;  // Length of the log.
  RestorePoint last_;
  RestorePoint before_last_;
  std::array<RestorePoint, 2> newest_;  // The last points, including the points of the present run.
  std::int64_t started_at_ = 0;
  std::vector<std::pair<Rank, ino_t>> repositories_;  // The noted directories.
};

}  // namespace varve::transfer
