// SPDX-License-Identifier: Apache-2.0
// The placements of a series' data, and their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve {

/// Defines where new chunks of a series are looked up and stored. A version keeps the series'
/// placement from the opening of the version. The values are stored.
enum class Placement : std::uint8_t {
  kLineage = 0,      ///< Looked up in the series' own versions and stored in the series.
  kLineagePool = 1,  ///< Looked up in the series, then in the pool; stored in the series.
  kPool = 2,         ///< Looked up and stored in the pool, shared by all series.
};

/// Returns the placement's name, as in a superblock.
[[nodiscard]] std::string_view placement_name(Placement placement);
/// Returns the names of all placements, as a list for messages and help texts.
[[nodiscard]] std::string placement_names();
/// Returns the placement with a name.
/// Errors: kInvalid for another name; the message lists the names.
[[nodiscard]] Result<Placement> parse_placement(std::string_view name);
/// Checks that libvarve's build can make series with the placement.
/// Errors: kUnsupported.
[[nodiscard]] Result<void> check_placement(Placement placement);

}  // namespace varve
