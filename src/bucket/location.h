// SPDX-License-Identifier: Apache-2.0
// The place of a repository in an object store: s3://BUCKET/PREFIX.
#pragma once

#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve::bucket {

/// A bucket, and the names in the bucket that begin with a prefix.
struct Location {
  std::string bucket{};              ///< 3 to 63 characters: a-z, 0-9, "." and "-".
  std::string prefix{};              ///< Empty for the whole bucket; otherwise ends in "/".
  std::string_view begin = "s3://";  ///< Scheme::begin of a row in the table of schemes.

  bool operator==(const Location&) const = default;
};

/// Returns whether a repository's path means an object store: whether the path begins as a row of
/// the table in schemes.cc says.
[[nodiscard]] bool is_location(std::string_view path);

/// Parses a place by its scheme, for example "s3://BUCKET/PREFIX", with or without a last slash.
/// The prefix stays unchanged, without any decoding. Errors: kInvalid with advice.
[[nodiscard]] Result<Location> parse_location(std::string_view text);

/// Returns the text parsed by parse_location(), without a last slash.
[[nodiscard]] std::string text_of(const Location& location);

}  // namespace varve::bucket
