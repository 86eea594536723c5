// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::transfer {

/// A descriptor shared by several threads. The last holder closes the descriptor.
using SharedFd = std::shared_ptr<const base::UniqueFd>;

/// The part of the process's descriptors for each bounded set of a transfer: the stack of
/// directories, the directories of files in progress, and the files, directories and links of a
/// scattered batch. The repository has the rest.
inline constexpr std::size_t kDescriptorShare = 8;

/// The open directories from a tree's root down to the current directory. Holds descriptors, so no
/// path is resolved a second time. At most kOpenMax directories stay open, and fewer if the process
/// may have few descriptors. In a deeper tree, the stack closes the upper directories, opens a
/// closed directory again through "..", and compares the identity. Not thread-safe.
class DirectoryStack {
 public:
  static constexpr std::size_t kOpenMin = 4;
  static constexpr std::size_t kOpenMax = 128;

  DirectoryStack();

  [[nodiscard]] Result<void> push(base::UniqueFd directory);
  /// Returns the deepest directory's descriptor. The stack must not be empty.
  [[nodiscard]] int top() const { return frames_.back().fd->get(); }
  /// Returns the same descriptor for users beyond a pop().
  [[nodiscard]] SharedFd share_top() const { return frames_.back().fd; }
  /// Leaves the deepest directory and returns the descriptor, so the caller can still set the
  /// directory's metadata.
  /// Errors: kStale if the parent was moved in the meantime.
  [[nodiscard]] Result<SharedFd> pop();
  [[nodiscard]] std::size_t depth() const { return frames_.size(); }

 private:
  struct Frame {
    SharedFd fd;
    dev_t device = 0;
    ino_t inode = 0;
  };
  std::size_t open_max_;
  std::vector<Frame> frames_;
  std::size_t first_open_ = 0;  // Frames below this index are closed.
};

}  // namespace varve::transfer
