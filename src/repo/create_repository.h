// SPDX-License-Identifier: Apache-2.0
// Creation of a repository in a folder.
#pragma once

#include <functional>
#include <string>

#include "io/file_system.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::repo {

/// Creates a repository as Repository::create() does. Calls `before_last`, if set, just before the
/// folder becomes a repository: every existing repository has the files written by `before_last`.
/// Errors: as for Repository::create() and `before_last`.
[[nodiscard]] Result<void> create_repository(
    const std::string& path, const RepositoryParameters& parameters, const CreateOptions& options,
    const std::function<Result<void>(io::FileSystem& files)>& before_last);

}  // namespace varve::repo
