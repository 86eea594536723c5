// SPDX-License-Identifier: Apache-2.0
// Names of the versions that receive a copy from another repository, until it is complete.
#pragma once

#include <string>
#include <string_view>

#include "varve/types.h"

namespace varve {

/// Returns the name, without ".partial", of the version that receives a copy of `origin`.
[[nodiscard]] std::string receiving_name(const VersionOrigin& origin);

/// Returns the id of the repository in such a name, with or without ".partial"; "" for other names.
[[nodiscard]] std::string receiving_repository(std::string_view name);

/// Returns whether a version of this name, with or without ".partial", receives or received a copy.
[[nodiscard]] bool is_receiving_name(std::string_view name);

}  // namespace varve
