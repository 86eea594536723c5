// SPDX-License-Identifier: Apache-2.0
// The privileges of a file, and the loss of privileges by a write.
#pragma once

#include <atomic>
#include <cstdint>

#include "fs/caller.h"
#include "fs/handles.h"
#include "fs/kernel_notifier.h"
#include "fs/node_table.h"
#include "varve/result.h"

namespace varve::fs {

/// Removes set-user-ID and set-group-ID bits and capabilities from written files. Thread-safe.
class Privileges {
 public:
  /// Lifetime: the arguments must outlive the object.
  Privileges(NodeTable& nodes, const KernelNotifier& kernel) : nodes_(nodes), kernel_(kernel) {}

  /// Records that a file got privilege bits or a capability, to be removed by a later write.
  void note() { given_.fetch_add(1); }
  /// Returns the number of notes, from 1. A handle checks its file's mode only after a change.
  [[nodiscard]] std::uint64_t count() const { return given_.load(); }

  /// Clears the file's set-user-ID and set-group-ID bits, unless root writes, and its capabilities.
  /// For direct I/O, the kernel leaves the clearing to the daemon.
  [[nodiscard]] Result<void> drop(const Caller& caller, fuse_ino_t ino, FileHandle& handle);

 private:
  NodeTable& nodes_;
  const KernelNotifier& kernel_;
  std::atomic<std::uint64_t> given_{1};
};

}  // namespace varve::fs
