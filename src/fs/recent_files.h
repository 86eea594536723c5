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

/// The files that processes read last, for mounts where the kernel sends no open. Each process has
/// a separate handle of a file: with a shared handle, two sequential readers would look like a
/// random reader. The number is small because the recipe of a file with a million extents takes
/// many megabytes. Thread-safe.
class RecentFiles {
 public:
  static constexpr std::size_t kFilesMax = 32;

  /// Returns the handle of a file and a process; null if no handle was kept.
  [[nodiscard]] std::shared_ptr<FileHandle> find(fuse_ino_t ino, pid_t reader) {
    const std::lock_guard lock(mutex_);
    for (auto at = files_.begin(); at != files_.end(); ++at) {
      if (at->ino != ino || at->reader != reader) continue;
      files_.splice(files_.begin(), files_, at);
      return at->handle;
    }
    return nullptr;
  }
  /// Keeps a handle. Drops the least recently used handle if there are more than kFilesMax.
  void add(fuse_ino_t ino, pid_t reader, std::shared_ptr<FileHandle> handle) {
    std::list<File> last;  // Destroyed after the lock is released.
    const std::lock_guard lock(mutex_);
    files_.push_front({ino, reader, std::move(handle)});
    if (files_.size() > kFilesMax) last.splice(last.begin(), files_, std::prev(files_.end()));
  }
  /// Drops all handles.
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
  std::list<File> files_;  // Most recently used first.
};

}  // namespace varve::fs
