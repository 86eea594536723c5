// SPDX-License-Identifier: Apache-2.0
// Keeps removed files of an open version while their users still need them.
#pragma once

#include "varve/version_writer.h"

namespace varve {

/// Keeps removed files for a caller whose users hold files without opening them, as the kernel does
/// for a program's current directory. Every VersionWriter of a Repository implements this
/// interface. Thread-safe.
class RemovedFiles {
 public:
  virtual ~RemovedFiles() = default;
  /// Keeps each file or directory that loses its last name from now on, until forget(). For such an
  /// inode, get() returns nlink 0, and a directory has no entries.
  virtual void keep_removed() = 0;
  /// Stops keeping one inode. Does not wait. Has no effect on an inode that has a name.
  virtual void forget(Ino ino) = 0;
};

}  // namespace varve
