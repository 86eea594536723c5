// SPDX-License-Identifier: Apache-2.0
// The names of copies, which follow those of the originals.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "copy/target.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::copy {

/// A rename of a version of the target.
struct NameChange {
  VersionNumber number{};
  std::string from;
  std::string to;
};

/// Returns the renames after which each copy has the name of its original, and no other version has
/// the name of an original. A copy whose original is gone then gets the name NAME.kept-NUMBER.
/// Each rename leads to a name that is free by then: names that originals exchanged go through
/// NAME.moving-NUMBER.
[[nodiscard]] std::vector<NameChange> plan_names(const std::vector<VersionInfo>& originals,
                                                 const std::vector<TargetVersion>& copies);

}  // namespace varve::copy
