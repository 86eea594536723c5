// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// SERIES[/VERSION[/path]] as given on the command line.
struct VersionPath {
  std::string series;
  std::string version;  ///< "" if only a series was named.
  std::string path;     ///< Inside the version, without slashes at its ends.
};

/// Extra slashes count as one.
[[nodiscard]] VersionPath parse_version_path(std::string_view text);

/// As parse_version_path(), but kInvalid without a version or, unless `path_allowed`, with a
/// path in it.
[[nodiscard]] Result<VersionPath> require_version(std::string_view text, bool path_allowed);

/// Finds the version; the error says which name is unknown.
[[nodiscard]] Result<VersionInfo> find_version(Repository& repository, const VersionPath& path);

}  // namespace varve::cli
