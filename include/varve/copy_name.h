// SPDX-License-Identifier: Apache-2.0
// Names of versions while receiving a copy from another repository, and the ids of repositories.
#pragma once

#include <string>
#include <string_view>

#include "varve/types.h"

namespace varve {

/// Returns whether a text has the form of Repository::id().
[[nodiscard]] bool is_repository_id(std::string_view text);

/// Returns the name, without ".partial", of the version receiving a copy of `origin`.
[[nodiscard]] std::string receiving_name(const VersionOrigin& origin);

/// Returns the id of the repository in a receiving name, with or without ".partial"; "" for any
/// other name.
[[nodiscard]] std::string receiving_repository(std::string_view name);

/// Returns whether a version with the name, with or without ".partial", receives or received a
/// copy.
[[nodiscard]] bool is_receiving_name(std::string_view name);

}  // namespace varve
