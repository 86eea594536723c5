// SPDX-License-Identifier: Apache-2.0
// Finds the version and repository that a command line names.
#pragma once

#include <string>

#include "cli/options.h"
#include "cli/version_path.h"
#include "varve/result.h"

namespace varve::cli {

struct VersionTarget {
  std::string repository;
  VersionPath version;
};

/// The words of a command line that name a version.
struct TargetWords {
  std::string first;   ///< The repository, or a path in a mount.
  std::string second;  ///< The version.
};

/// Adds the arguments REPO and VERSION to a command. `what` is the subject of REPO's help.
void add_target_words(Command& command, TargetWords& words, const std::string& what,
                      const std::string& version_help);

/// Finds an existing version. Accepts three forms:
/// - REPO and SERIES/VERSION;
/// - `second` empty: a version's path in a mount;
/// - `second` empty: SERIES/VERSION of the repository in VARVE_REPO.
/// The command will change the version, so the mount of a path must be confirmed by the
/// repository's daemon.
/// Errors: kInvalid if no form fits; otherwise as control::find_mounted().
[[nodiscard]] Result<VersionTarget> find_target(const std::string& first,
                                                const std::string& second);

/// Finds a version to be created, likewise. For a path, the directory above it must exist.
/// Errors: kUsage if no version can have this name.
[[nodiscard]] Result<VersionTarget> find_new_target(const std::string& first,
                                                    const std::string& second);

/// Returns "SERIES/VERSION".
[[nodiscard]] std::string name_of(const VersionPath& path);

}  // namespace varve::cli
