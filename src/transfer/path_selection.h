// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace varve::transfer {

/// Selects entries of a tree: entries at or below given paths, and the directories above the paths.
class PathSelection {
 public:
  enum class Match {
    kNone,
    kOnTheWay,  ///< A directory above a wanted path.
    kWanted,
  };

  /// Selects `paths`, relative to the tree's root, without leading or trailing slashes. An empty
  /// list selects everything.
  explicit PathSelection(const std::vector<std::string>& paths);
  [[nodiscard]] Match match(std::string_view path) const;

 private:
  bool all_ = false;
  std::set<std::string, std::less<>> wanted_;
  std::set<std::string, std::less<>> above_;
};

}  // namespace varve::transfer
