// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "transfer/entry_lister.h"
#include "transfer/path_selection.h"
#include "transfer/problem_list.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::transfer {

/// Visits the entries of a version in tree order, for an archive: all entries, the entries below a
/// single path, or the selected entries of several paths. Not thread-safe.
/// Lifetime: the arguments must outlive the object.
class EntryWalk {
 public:
  EntryWalk(VersionReader& version, const std::vector<std::string>& paths, ProblemList& problems);

  /// Looks up all paths. Returns the entry at which the walk begins. Must be called once.
  [[nodiscard]] Result<SealedEntry> begin();
  /// Calls `add` for each entry, except for the entry of begin() if the entry is a directory. For a
  /// directory nested too deeply or in a circle, calls `refuse` instead and leaves the directory
  /// out. An error of either function ends the walk.
  [[nodiscard]] Result<void> run(const std::function<Result<void>(const SealedEntry&)>& add,
                                 const std::function<Result<void>()>& refuse);
  /// Returns the path of the present entry. The caller may change the path before run(), and must
  /// restore the path by then.
  [[nodiscard]] std::string& path() { return path_; }

 private:
  struct Frame {
    EntryLister lister;
    Rank rank = 0;
    std::size_t path_bytes = 0;
  };
  VersionReader& version_;
  const std::vector<std::string>& paths_;
  ProblemList& problems_;
  PathSelection selection_;
  std::vector<Frame> frames_;
  std::string path_;
};

}  // namespace varve::transfer
