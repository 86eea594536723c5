// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/problem_list.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::transfer {

/// Maximum depth of a version's tree: deeper than any path accepted by a system call, so a hostile
/// tree has a bounded cost.
inline constexpr std::size_t kDepthMax = 16384;

/// Returns whether a file can have the name.
[[nodiscard]] bool safe_name(std::string_view name);

/// Returns the entry at a path of the version, with the path's last component. Follows no symlinks.
[[nodiscard]] Result<SealedEntry> find_entry(VersionReader& version, const std::string& path,
                                             std::string& last_name);

/// A name in a directory of a version.
struct ListedEntry {
  std::uint64_t position = 0;
  std::string name;
  SealedEntry entry;
};

/// Yields the entries of an untrusted directory. Leaves out invalid, duplicate and unordered names,
/// and reports the names as problems. Not thread-safe.
class EntryLister {
 public:
  explicit EntryLister(Rank directory) : directory_(directory) {}
  /// Creates a lister of a single entry.
  explicit EntryLister(ListedEntry only) : listed_(true) { batch_.push_back(std::move(only)); }

  /// Returns the next entry, valid until the next call; nullptr at the end. `path` is the path of
  /// the directory, for messages. An error ends the transfer.
  [[nodiscard]] Result<ListedEntry*> next(VersionReader& version, const std::string& path,
                                          ProblemList& problems);

 private:
  [[nodiscard]] Result<void> fill(VersionReader& version, const std::string& path,
                                  ProblemList& problems);
  Rank directory_ = 0;
  std::vector<ListedEntry> batch_;
  std::size_t next_ = 0;
  std::uint64_t after_ = 0;
  std::string last_name_;
  bool listed_ = false;  // True if batch_ has the last batch.
};

}  // namespace varve::transfer
