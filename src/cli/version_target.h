// SPDX-License-Identifier: Apache-2.0
// A version together with its repository, as a command line names them.
#pragma once

#include <string>

#include "cli/version_path.h"
#include "varve/result.h"

namespace varve::cli {

struct VersionTarget {
  std::string repository;
  VersionPath version;
};

/// REPO and SERIES/VERSION; or, with `second` empty, a version's path in a mount, or
/// SERIES/VERSION of the repository in VARVE_REPO. The version is going to be changed, so its
/// path must be in a mount that the repository's daemon confirms.
/// Errors: kInvalid where neither fits; otherwise as control::find_mounted().
[[nodiscard]] Result<VersionTarget> find_target(const std::string& first,
                                                const std::string& second);

/// The same for a version that is to be made: of a path, the directory must exist.
[[nodiscard]] Result<VersionTarget> find_new_target(const std::string& first,
                                                    const std::string& second);

/// "SERIES/VERSION".
[[nodiscard]] std::string name_of(const VersionPath& path);

}  // namespace varve::cli
