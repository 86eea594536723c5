// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace varve::transfer {

/// Which entries of a tree are wanted: those at or below given paths, and the directories on
/// the way there.
class PathSelection {
 public:
  enum class Match {
    kNone,
    kOnTheWay,  ///< A directory above a wanted path.
    kWanted,
  };

  /// Paths from the tree's root, without slashes at the ends. None at all: everything.
  explicit PathSelection(const std::vector<std::string>& paths);
  [[nodiscard]] Match match(std::string_view path) const;

 private:
  bool all_ = false;
  std::set<std::string, std::less<>> wanted_;
  std::set<std::string, std::less<>> above_;
};

}  // namespace varve::transfer
