// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::transfer {

/// A descriptor that several threads share. The last holder closes it.
using SharedFd = std::shared_ptr<const base::UniqueFd>;

/// The part of the process's descriptors that each bounded set of a transfer may take: the stack of
/// directories, the directories of files under way, and the files, directories and links of a
/// scattered batch. The repository has the rest.
inline constexpr std::size_t kDescriptorShare = 8;

/// The open directories from a tree's root down to the current one. Holds descriptors, so that no
/// path is resolved a second time. At most kOpenMax stay open, and fewer where the process may have
/// few descriptors. In a deeper tree, the stack closes the upper ones, opens them again through
/// "..", and compares their identity. Not thread-safe.
class DirectoryStack {
 public:
  static constexpr std::size_t kOpenMin = 4;
  static constexpr std::size_t kOpenMax = 128;

  DirectoryStack();

  [[nodiscard]] Result<void> push(base::UniqueFd directory);
  /// Returns the deepest directory's descriptor. The stack must not be empty.
  [[nodiscard]] int top() const { return frames_.back().fd->get(); }
  /// Returns the same descriptor for users that may need it after a pop().
  [[nodiscard]] SharedFd share_top() const { return frames_.back().fd; }
  /// Leaves the deepest directory and returns its descriptor, so that the caller can still set its
  /// metadata.
  /// Errors: kStale if its parent was moved in the meantime.
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
