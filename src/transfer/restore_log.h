// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// How far a restore is: all entries before `rank`, and of the file with this rank the bytes
/// before `offset`.
struct RestorePoint {
  Rank rank = 0;
  std::uint64_t offset = 0;
};

/// The log by which an interrupted restore goes on: a small file in the target directory, in
/// lines that carry a checksum, so that a torn one is not believed. A point is added only
/// after all before it is on the disk. Not synchronised; add() may be called by one thread
/// while others ask what was read at the opening.
///
/// After the restore record list of ALACC (Cao et al., FAST 2018), with the target's
/// synchronisation in the place of a write through the page cache.
class RestoreLog {
 public:
  /// Reads the log `name` in the directory, if there is one of this `identity` (a line that
  /// names the version and the part of it) and of this user. The descriptor must stay open.
  RestoreLog(int directory_fd, std::string name, std::string identity);

  /// The log of an interrupted restore of the same thing was found.
  [[nodiscard]] bool resumes() const { return resumes_; }
  /// The last point, and the one before it: what lies between is read again and compared.
  [[nodiscard]] const RestorePoint& last() const { return last_; }
  [[nodiscard]] const RestorePoint& verified() const { return before_last_; }
  /// When the restore began, in seconds by the target's clock.
  [[nodiscard]] std::int64_t started_at() const { return started_at_; }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The name that an entry has until it is whole.
  [[nodiscard]] std::string temporary_name(Rank rank) const;
  [[nodiscard]] bool is_temporary_name(const std::string& name) const;

  /// Makes the log, on the disk, if it is not there. Before the first temporary name is used.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] bool started() const { return fd_.valid(); }
  /// Syncs the target's file system and then notes the point.
  [[nodiscard]] Result<void> add(const RestorePoint& point);
  /// The restore is complete.
  [[nodiscard]] Result<void> remove();

 private:
  void read();
  [[nodiscard]] Result<void> append(const std::string& payload);

  const int directory_fd_;
  const std::string name_;
  const std::string identity_;
  std::string token_;  // Tells this restore's temporary files from all other files.
  base::UniqueFd fd_;
  bool resumes_ = false;
  bool stale_ = false;  // There is the log of another restore, which has no use any more.
  RestorePoint last_;
  RestorePoint before_last_;
  std::int64_t started_at_ = 0;
};

}  // namespace varve::transfer
