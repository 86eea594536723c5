// SPDX-License-Identifier: Apache-2.0
// Notifications to the kernel.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <atomic>
#include <string>

namespace varve::fs {

/// Makes the kernel drop parts of the kernel's caches. Thread-safe.
class KernelNotifier {
 public:
  /// Sets the session of the mount. Must be called before the loop starts.
  void attach(fuse_session* session) { session_ = session; }

  /// Returns true while there is a mount whose session has not ended.
  [[nodiscard]] bool is_mounted() const;
  /// Returns whether the kernel already has another request for the daemon.
  [[nodiscard]] bool has_more_requests() const;

  /// Drops the cached attributes of a node. Takes no lock of a waiting request, so the call is
  /// allowed while the kernel waits for a reply.
  void forget_attributes(fuse_ino_t node) const;
  /// Drops the cached attributes and pages of a node, or the target of a link. Waits for requests
  /// reading the node. Not for a thread on which a reading request may wait.
  void forget_pages(fuse_ino_t node) const;
  /// Drops the cached name in a directory. Only for commands: the kernel must not get the
  /// notification while a request holds the directory.
  void forget_name(fuse_ino_t directory, const std::string& name) const;

 private:
  // Atomic, because the control server starts before attach() and may ask at once.
  std::atomic<fuse_session*> session_{nullptr};
};

}  // namespace varve::fs
