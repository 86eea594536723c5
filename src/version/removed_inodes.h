// SPDX-License-Identifier: Apache-2.0
// The inodes without a name still held by the caller of an open version.
#pragma once

#include <mutex>
#include <unordered_set>
#include <vector>

#include "varve/backup.h"

namespace varve::version {

/// The set behind the interface RemovedFiles. Thread-safe. Lock order: see OpenState; forget()
/// waits for no other lock.
class RemovedInodes {
 public:
  /// From now on, hold() keeps inodes.
  void keep();
  /// Remembers an inode after the removal of the last name. Returns whether the inode is kept until
  /// forget().
  [[nodiscard]] bool hold(Ino ino);
  /// Notes that the caller does not hold the inode any more. Has no effect on an inode not held.
  void forget(Ino ino);
  /// Returns whether an inode is held, or noted by forget() since the last take_forgotten().
  [[nodiscard]] bool any() const;
  /// Returns the inodes noted by forget() since the last call.
  [[nodiscard]] std::vector<Ino> take_forgotten();

 private:
  mutable std::mutex mutex_;
  bool keeps_ = false;
  std::unordered_set<Ino> held_;
  std::vector<Ino> forgotten_;
};

}  // namespace varve::version
