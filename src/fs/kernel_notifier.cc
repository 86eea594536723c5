// SPDX-License-Identifier: Apache-2.0
#include "fs/kernel_notifier.h"

#include <poll.h>

namespace varve::fs {

bool KernelNotifier::is_mounted() const {
  return session_ != nullptr && fuse_session_exited(session_) == 0;
}

bool KernelNotifier::has_more_requests() const {
  if (session_ == nullptr) return false;
  pollfd device{fuse_session_fd(session_), POLLIN, 0};
  return ::poll(&device, 1, 0) == 1;
}

void KernelNotifier::forget_attributes(fuse_ino_t node) const {
  // A negative offset limits the notification to the attributes.
  fuse_lowlevel_notify_inval_inode(session_, node, -1, 0);
}

void KernelNotifier::forget_pages(fuse_ino_t node) const {
  fuse_lowlevel_notify_inval_inode(session_, node, 0, 0);
}

void KernelNotifier::forget_name(fuse_ino_t directory, const std::string& name) const {
  fuse_lowlevel_notify_inval_entry(session_, directory, name.c_str(), name.size());
}

}  // namespace varve::fs
