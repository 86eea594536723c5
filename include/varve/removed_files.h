// SPDX-License-Identifier: Apache-2.0
// Files of an open version that were removed while its user may still need them.
#pragma once

#include "varve/version_writer.h"

namespace varve {

/// For a caller whose own users may hold a file without opening it, as the kernel does for a
/// program's current directory. A VersionWriter of a Repository is one. Thread-safe.
class RemovedFiles {
 public:
  virtual ~RemovedFiles() = default;
  /// From now on, a file or directory that loses its last name stays until forget(): get() tells
  /// of it with nlink 0, and a directory has no entries.
  virtual void keep_removed() = 0;
  /// Ends that for one inode. Does not wait. Leaves an inode with a name alone.
  virtual void forget(Ino ino) = 0;
};

}  // namespace varve
