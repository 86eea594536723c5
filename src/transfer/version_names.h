// SPDX-License-Identifier: Apache-2.0
// The names of an open version: walking a directory, removing a subtree.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "varve/backup.h"
#include "varve/result.h"

namespace varve::transfer {

/// A name in a directory of an open version.
struct VersionName {
  std::string name;
  OpenEntry entry;
};

/// Yields the names of a directory in byte order, a batch at a time. The caller may change names
/// already taken. Not thread-safe.
class VersionNames {
 public:
  /// Yields no names.
  VersionNames() : listed_(true) {}
  explicit VersionNames(Ino directory) : directory_(directory) {}

  /// Returns the next name, or null at the end. Lifetime: until the next call of peek() after a
  /// take().
  [[nodiscard]] Result<const VersionName*> peek(VersionWriter& version);
  /// Moves past the name returned by peek().
  void take() { ++next_; }

 private:
  Ino directory_ = 0;
  std::vector<VersionName> batch_;
  std::size_t next_ = 0;
  bool listed_ = false;  // True if batch_ has the last batch.
};

/// Removes everything below a directory.
[[nodiscard]] Result<void> clear_directory(VersionWriter& version, Ino directory);

}  // namespace varve::transfer
