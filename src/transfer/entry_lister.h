// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/problem_list.h"
#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// A name that a file can have.
[[nodiscard]] bool safe_name(std::string_view name);

/// The entry at a path of the version, and its last component. No symlink is followed.
[[nodiscard]] Result<SealedEntry> find_entry(VersionReader& version, const std::string& path,
                                             std::string& last_name);

/// A name in a directory of a version.
struct ListedEntry {
  std::uint64_t position = 0;
  std::string name;
  SealedEntry entry;
};

/// Goes through the entries of one directory that is not trusted: names that no file can have,
/// that stand twice or out of order are left out, with a problem. Not synchronised.
class EntryLister {
 public:
  explicit EntryLister(Rank directory) : directory_(directory) {}
  /// Gives this one entry, whatever the directory has.
  explicit EntryLister(ListedEntry only) : listed_(true) { batch_.push_back(std::move(only)); }

  /// The next entry, valid until the next call; nullptr at the end. `path` is the directory's,
  /// for messages. An error ends the transfer.
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
  bool listed_ = false;  // The last batch is in batch_.
};

}  // namespace varve::transfer
