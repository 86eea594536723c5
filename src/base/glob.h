// SPDX-License-Identifier: Apache-2.0
// Patterns with wildcards for file names, compared byte by byte in every locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"

namespace varve::base {

/// Returns whether the pattern matches all of `name`: * stands for any bytes, ? for one byte,
/// [a-z] and [!a-z] for one byte in or outside a set, \c for the byte c. Takes time proportional to
/// the product of both lengths at most.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view name);

/// Errors: kInvalid, with the reason, for an incomplete set or a backslash at the end.
[[nodiscard]] Result<void> check_glob(std::string_view pattern);

/// A pattern for paths. A pattern without a slash matches the last component of a path. A pattern
/// with a slash at the beginning or in the middle matches the whole path, component by component; a
/// component ** stands for any number of components.
class PathGlob {
 public:
  /// Errors: kInvalid for a pattern that can match nothing or is incomplete.
  [[nodiscard]] static Result<PathGlob> parse(std::string_view pattern);
  /// Returns whether the pattern matches a path without slashes at its ends.
  [[nodiscard]] bool matches(std::string_view path) const;
  /// Returns true if the pattern matches the last component only.
  [[nodiscard]] bool of_name() const { return of_name_; }

 private:
  bool of_name_ = false;
  std::vector<std::string> components_;
};

}  // namespace varve::base
