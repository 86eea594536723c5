// SPDX-License-Identifier: Apache-2.0
#include "version/removed_inodes.h"

namespace varve::version {

void RemovedInodes::keep() {
  const std::lock_guard lock(mutex_);
  keeps_ = true;
}

bool RemovedInodes::hold(Ino ino) {
  const std::lock_guard lock(mutex_);
  if (keeps_) held_.insert(ino);
  return keeps_;
}

// The kernel's eviction of any inode ends here, so forget() only notes the removed inodes.
void RemovedInodes::forget(Ino ino) {
  const std::lock_guard lock(mutex_);
  if (held_.erase(ino) != 0) forgotten_.push_back(ino);
}

bool RemovedInodes::any() const {
  const std::lock_guard lock(mutex_);
  return !held_.empty() || !forgotten_.empty();
}

std::vector<Ino> RemovedInodes::take_forgotten() {
  std::vector<Ino> forgotten;
  const std::lock_guard lock(mutex_);
  forgotten.swap(forgotten_);
  return forgotten;
}

}  // namespace varve::version
