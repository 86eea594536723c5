// SPDX-License-Identifier: Apache-2.0
// Finds series and versions by names from the user.
#pragma once

#include <string>

#include "varve/repository.h"
#include "varve/result.h"

namespace varve::control {

/// The two parts of SERIES/VERSION.
struct VersionName {
  std::string series;
  std::string version;
};

/// Returns the parts of `text`.
/// Errors: kInvalid if `text` has no slash.
[[nodiscard]] Result<VersionName> split_version_name(const std::string& text);

/// Returns the series with this name.
/// Errors: kNotFound, with the unknown name.
[[nodiscard]] Result<SeriesInfo> find_series(Repository& repository, const std::string& name);

/// Returns the error for an open version in place of a sealed version. `name`: SERIES/VERSION.
[[nodiscard]] Error version_is_open(const std::string& name);

/// Returns the version with this name, or the newest sealed version for "latest".
/// Errors: kNotFound, with the unknown name; version_is_open() if the repository is open for
/// reading, and so does not know open versions.
[[nodiscard]] Result<VersionInfo> find_version(Repository& repository, const VersionName& name);

}  // namespace varve::control
