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
  std::string path;     ///< Inside the version, without slashes at the ends.
};

/// Returns the parts of SERIES[/VERSION[/path]]. Several slashes count as one.
[[nodiscard]] VersionPath parse_version_path(std::string_view text);

/// Returns the parts of a text that names a version.
/// Errors: kInvalid if the version is missing, or for a path unless `path_allowed`.
[[nodiscard]] Result<VersionPath> require_version(std::string_view text, bool path_allowed);

/// Checks the names of a new version, or of a new series if the version is empty.
/// Errors: kUsage.
[[nodiscard]] Result<void> check_new_names(const VersionPath& path, VersionState state);

/// Returns the named version, ignoring the path.
/// Errors: kNotFound, with the unknown name.
[[nodiscard]] Result<VersionInfo> find_version(Repository& repository, const VersionPath& path);

}  // namespace varve::cli
