// SPDX-License-Identifier: Apache-2.0
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "fs/handles.h"

namespace varve::fs {

/// The files that were read last, where the kernel opens none: with each it stands who reads it,
/// so that two readers of one file do not look like one that jumps. Few, since a file of a
/// million extents has a recipe of many megabytes. Thread-safe.
class RecentFiles {
 public:
  static constexpr std::size_t kFilesMax = 32;

  /// Null if it is not among them.
  [[nodiscard]] std::shared_ptr<FileHandle> find(fuse_ino_t ino, pid_t reader) {
    const std::lock_guard lock(mutex_);
    for (auto at = files_.begin(); at != files_.end(); ++at) {
      if (at->ino != ino || at->reader != reader) continue;
      files_.splice(files_.begin(), files_, at);
      return at->handle;
    }
    return nullptr;
  }
  void add(fuse_ino_t ino, pid_t reader, std::shared_ptr<FileHandle> handle) {
    std::list<File> last;  // Ends outside of the lock.
    const std::lock_guard lock(mutex_);
    files_.push_front({ino, reader, std::move(handle)});
    if (files_.size() > kFilesMax) last.splice(last.begin(), files_, std::prev(files_.end()));
  }
  void clear() {
    std::list<File> last;
    const std::lock_guard lock(mutex_);
    last.swap(files_);
  }

 private:
  struct File {
    fuse_ino_t ino;
    pid_t reader;
    std::shared_ptr<FileHandle> handle;
  };
  std::mutex mutex_;
  std::list<File> files_;  // The last one used comes first.
};

}  // namespace varve::fs
