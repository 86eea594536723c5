// SPDX-License-Identifier: Apache-2.0
// Names of the versions that receive a copy from another repository, until the copy is complete,
// and the ids of repositories.
#pragma once

#include <string>
#include <string_view>

#include "varve/types.h"

namespace varve {

/// Returns whether a text has the form of Repository::id().
[[nodiscard]] bool is_repository_id(std::string_view text);

/// Returns the name, without ".partial", of the version that receives a copy of `origin`.
[[nodiscard]] std::string receiving_name(const VersionOrigin& origin);

/// Returns the id of the repository in such a name, with or without ".partial"; "" for other names.
[[nodiscard]] std::string receiving_repository(std::string_view name);

/// Returns whether a version of this name, with or without ".partial", receives or received a copy.
[[nodiscard]] bool is_receiving_name(std::string_view name);

}  // namespace varve
