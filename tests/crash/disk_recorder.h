// SPDX-License-Identifier: Apache-2.0
// Stands between this program and the C library, and writes down every change that is made to
// the disk below a folder, by Varve and by the libraries that it uses alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "disk_call.h"

namespace varve::test {

/// One at a time in a process, since there is one C library. Thread-safe.
class DiskRecorder {
 public:
  /// Records changes below `root`, an absolute path, from now on.
  explicit DiskRecorder(const std::string& root);
  ~DiskRecorder();
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;

  /// Call number `call` (0 = the first that is recorded) fails with this errno, and does nothing;
  /// with `for_good`, so do all after it.
  void fail(std::uint64_t call, int errno_value, bool for_good);
  /// Nothing fails any more.
  void heal();
  /// fsync and its like return at once and do nothing, as on a disk that lies.
  void ignore_syncs();

  /// Number of calls so far.
  [[nodiscard]] std::uint64_t calls() const;
  /// Whether fail() has met its call.
  [[nodiscard]] bool has_failed() const;
  [[nodiscard]] std::vector<DiskCall> take();
};

}  // namespace varve::test
