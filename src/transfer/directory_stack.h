// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::transfer {

/// A descriptor that several threads use; it closes with the last of them.
using SharedFd = std::shared_ptr<const base::UniqueFd>;

/// The directories from a tree's root down to the one being worked on, as descriptors, so
/// that no path is ever resolved again. At most kOpenMax stay open: in a deeper tree the
/// upper ones are closed and found again through "..", their identity compared. Not
/// synchronised.
class DirectoryStack {
 public:
  static constexpr std::size_t kOpenMax = 128;

  [[nodiscard]] Result<void> push(base::UniqueFd directory);
  /// The deepest directory's descriptor; the stack must not be empty.
  [[nodiscard]] int top() const { return frames_.back().fd->get(); }
  /// The same, for others who may use it longer than it is the top.
  [[nodiscard]] SharedFd share_top() const { return frames_.back().fd; }
  /// Leaves the deepest directory and returns its descriptor, with which its last metadata
  /// may still be set. kStale if its parent was moved meanwhile.
  [[nodiscard]] Result<SharedFd> pop();
  [[nodiscard]] std::size_t depth() const { return frames_.size(); }

 private:
  struct Frame {
    SharedFd fd;
    dev_t device = 0;
    ino_t inode = 0;
  };
  std::vector<Frame> frames_;
  std::size_t first_open_ = 0;  // Frames below this index are closed.
};

}  // namespace varve::transfer
