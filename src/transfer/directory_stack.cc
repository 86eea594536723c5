// SPDX-License-Identifier: Apache-2.0
#include "transfer/directory_stack.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/file_limit.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {

DirectoryStack::DirectoryStack()
    : open_max_(base::descriptors_for(kDescriptorShare, kOpenMin, kOpenMax)) {}

Result<void> DirectoryStack::push(base::UniqueFd directory) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0)
    return system_error("cannot examine a directory", errno);
  frames_.push_back(Frame{std::make_shared<const base::UniqueFd>(std::move(directory)),
                          status.st_dev, status.st_ino});
  if (frames_.size() - first_open_ > open_max_) frames_[first_open_++].fd.reset();
  return {};
}

Result<SharedFd> DirectoryStack::pop() {
  // Opens the parent before the caller changes the child's mode. The new mode may forbid the
  // opening.
  if (frames_.size() > 1 && first_open_ == frames_.size() - 1) {
    Frame& parent = frames_[frames_.size() - 2];
    base::UniqueFd fd(::openat(top(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return system_error("cannot open a parent directory", errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return system_error("cannot examine a directory", errno);
    if (status.st_dev != parent.device || status.st_ino != parent.inode) {
      return Error(ErrorCode::kStale, "a directory was moved during the transfer");
    }
    parent.fd = std::make_shared<const base::UniqueFd>(std::move(fd));
    --first_open_;
  }
  SharedFd fd = std::move(frames_.back().fd);
  frames_.pop_back();
  return fd;
}

}  // namespace varve::transfer
