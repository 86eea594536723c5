// SPDX-License-Identifier: Apache-2.0
// Intercepts this program's calls of the C library, and records every change to the disk below a
// folder, by Varve and by its libraries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "disk_call.h"

namespace varve::test {

/// Records the calls that change a folder, and can make one fail. It replaces functions of the C
/// library, so a process can have only one at a time. Thread-safe.
class DiskRecorder {
 public:
  /// Records changes below `root`, an absolute path, from now on.
  explicit DiskRecorder(const std::string& root);
  ~DiskRecorder();
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;

  /// Makes call number `call` fail with this errno and without effect. Call 0 is the first recorded
  /// one. With `for_good`, all later calls fail, too.
  void fail(std::uint64_t call, int errno_value, bool for_good);
  /// Stops all failures.
  void heal();
  /// Makes fsync and similar calls return at once without effect, as on a disk that ignores them.
  void ignore_syncs();

  /// Returns the number of calls so far.
  [[nodiscard]] std::uint64_t calls() const;
  /// Returns whether the call chosen by fail() has occurred.
  [[nodiscard]] bool has_failed() const;
  [[nodiscard]] std::vector<DiskCall> take();
};

}  // namespace varve::test
