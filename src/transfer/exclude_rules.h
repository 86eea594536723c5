// SPDX-License-Identifier: Apache-2.0
// The patterns of `varve store --exclude`, in the manner of gitignore(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"
#include "varve/result.h"

namespace varve::transfer {

/// Decides which entries of a source are excluded by the user. A pattern with a slash at the
/// beginning or in the middle matches paths below the source; any other pattern matches names. A
/// whole component ** matches any number of directories. A slash at the end limits the pattern to
/// directories. A pattern beginning with ! includes again. The last matching pattern decides.
class ExcludeRules {
 public:
  /// Errors: kInvalid for an incomplete pattern, or for a pattern without possible matches.
  [[nodiscard]] static Result<ExcludeRules> parse(const std::vector<std::string>& patterns);

  /// Returns whether the entry itself is excluded. `path` is relative to the source, without
  /// leading or trailing slashes. The caller skips everything below an excluded directory.
  [[nodiscard]] bool excludes(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    bool includes;
    bool only_directories;
    base::PathGlob glob;
  };
  std::vector<Rule> rules_;
};

}  // namespace varve::transfer
