// SPDX-License-Identifier: Apache-2.0
// The placements of a series' data, and their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve {

/// Where new chunks of a series are looked up and stored. A version keeps the placement that its
/// series had when it was opened. The values are stored.
enum class Placement : std::uint8_t {
  kLineage = 0,      ///< Looked up in the series' own versions and stored in the series.
  kLineagePool = 1,  ///< Looked up in the series, then in the pool; stored in the series.
  kPool = 2,         ///< Looked up and stored in the pool, which all series share.
};

/// Returns the placement's name, as in a superblock.
[[nodiscard]] std::string_view placement_name(Placement placement);
/// Returns the names of all placements, as a list for messages and help texts.
[[nodiscard]] std::string placement_names();
/// Returns the placement with a name.
/// Errors: kInvalid for another name; the message lists the names.
[[nodiscard]] Result<Placement> parse_placement(std::string_view name);
/// Checks that this build of libvarve can make series with the placement.
/// Errors: kUnsupported.
[[nodiscard]] Result<void> check_placement(Placement placement);

}  // namespace varve
