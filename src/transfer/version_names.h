// SPDX-License-Identifier: Apache-2.0
// The names of an open version: walking one directory, removing a subtree.
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

/// Yields the names of one directory in byte order, a batch at a time. The caller may change names
/// that it has taken. Not thread-safe.
class VersionNames {
 public:
  /// Yields no names.
  VersionNames() : listed_(true) {}
  explicit VersionNames(Ino directory) : directory_(directory) {}

  /// Returns the next name, or null at the end. Lifetime: until the next call of peek() after a
  /// take().
  [[nodiscard]] Result<const VersionName*> peek(VersionWriter& version);
  /// Moves past the name that peek() returned.
  void take() { ++next_; }

 private:
  Ino directory_ = 0;
  std::vector<VersionName> batch_;
  std::size_t next_ = 0;
  bool listed_ = false;  // True if batch_ has the last batch.
};

/// Removes a name and, if it is a directory, everything below it. A missing name is no error.
[[nodiscard]] Result<void> remove_from_version(VersionWriter& version, Ino directory,
                                               const std::string& name);
/// Removes everything below a directory.
[[nodiscard]] Result<void> clear_directory(VersionWriter& version, Ino directory);

}  // namespace varve::transfer
