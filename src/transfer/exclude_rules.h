// SPDX-License-Identifier: Apache-2.0
// The patterns of `varve store --exclude`, in the manner of gitignore(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"
#include "varve/result.h"

namespace varve::transfer {

/// Decides which entries of a source the user excludes. A pattern with a slash at its beginning or
/// in its middle matches paths below the source; any other one matches names. ** as a whole
/// component matches any number of directories. A slash at the end limits the pattern to
/// directories. A pattern that begins with ! includes again. The last pattern that matches decides.
class ExcludeRules {
 public:
  /// Errors: kInvalid for a pattern that can match nothing or is incomplete.
  [[nodiscard]] static Result<ExcludeRules> parse(const std::vector<std::string>& patterns);

  /// Returns whether the entry itself is excluded. `path` is relative to the source, without
  /// slashes at its ends. The caller skips everything below an excluded directory.
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
