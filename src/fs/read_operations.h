// SPDX-License-Identifier: Apache-2.0
// The requests to read open files.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "fs/buffer_pool.h"
#include "fs/caller.h"
#include "fs/handles.h"
#include "fs/kernel_notifier.h"
#include "fs/node_table.h"
#include "fs/recent_files.h"
#include "fs/reply.h"
#include "varve/result.h"

namespace varve::fs {

/// Answers read(2) and lseek(2). Thread-safe.
class ReadOperations {
 public:
  /// Lifetime: the arguments must outlive the object.
  ReadOperations(NodeTable& nodes, const KernelNotifier& kernel, BufferPool& buffers)
      : nodes_(nodes), kernel_(kernel), buffers_(buffers) {}

  /// Selects whether the kernel reads without sending open and release, to save two requests per
  /// file. Only for a read-only mount, where all versions are sealed.
  void set_opens_nothing(bool opens_nothing) { opens_nothing_ = opens_nothing; }
  [[nodiscard]] bool opens_nothing() const { return opens_nothing_; }

  /// A part of a file.
  struct Range {
    std::uint64_t offset;
    std::size_t bytes;
  };
  /// Reads a range of a file; fewer bytes only at the end. Lent bytes come first, then bytes in
  /// memory, then the disk. Returns Later if the read would delay later requests.
  [[nodiscard]] Result<Reply> read(const Caller& caller, fuse_ino_t ino, const Range& range,
                                   const fuse_file_info& info);
  /// Finds the next data or hole; `whence` must be SEEK_DATA or SEEK_HOLE.
  [[nodiscard]] Result<Reply> lseek(const Caller& caller, fuse_ino_t ino, off_t offset, int whence,
                                    const fuse_file_info& info);
  /// Drops the files kept for reading without open. Must be called after the last request.
  void clear() { recent_files_.clear(); }

 private:
  [[nodiscard]] Result<std::shared_ptr<FileHandle>> file_of(const Caller& caller, fuse_ino_t ino,
                                                            const fuse_file_info& info);
  [[nodiscard]] Result<std::optional<Reply>> read_from_memory(FileReader& reader,
                                                              const Range& range);
  [[nodiscard]] Result<Reply> read_waiting(FileHandle& handle, const Range& range);

  NodeTable& nodes_;
  const KernelNotifier& kernel_;
  BufferPool& buffers_;
  /// Number of further reads of sealed files to run in the pool if the disk is needed. Set after
  /// several reads were pending at once. At 0, the loop serves the reads itself.
  std::atomic<int> reads_to_hand_over_ = 0;
  std::atomic<bool> opens_nothing_ = false;
  RecentFiles recent_files_;
};

}  // namespace varve::fs
