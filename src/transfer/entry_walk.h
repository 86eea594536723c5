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

/// Visits the entries of a version in tree order, for an archive: all of them, those below one
/// path, or the selected ones if there are several paths. Not thread-safe.
/// Lifetime: the arguments must outlive it.
class EntryWalk {
 public:
  EntryWalk(VersionReader& version, const std::vector<std::string>& paths, ProblemList& problems);

  /// Looks all paths up. Returns the entry at which the walk begins. Call it once.
  [[nodiscard]] Result<SealedEntry> begin();
  /// Calls `add` for each entry but that of begin(), if it is a directory. Calls `refuse` instead
  /// for a directory that is nested too deeply or in a circle, and leaves it out. An error of
  /// either ends the walk.
  [[nodiscard]] Result<void> run(const std::function<Result<void>(const SealedEntry&)>& add,
                                 const std::function<Result<void>()>& refuse);
  /// The path of the present entry. The caller may change it before run(), and must restore it.
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
