// SPDX-License-Identifier: Apache-2.0
// The names of copies. Copies follow the names of the originals.
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

/// Returns the renames after which each copy has the original's name, and no remaining copy has the
/// name of an original: a copy whose original was deleted gets the name NAME.kept-NUMBER instead.
/// Each rename leads to a free name: names exchanged between originals go through
/// NAME.moving-NUMBER.
[[nodiscard]] std::vector<NameChange> plan_names(const std::vector<VersionInfo>& originals,
                                                 const std::vector<TargetVersion>& copies);

}  // namespace varve::copy
