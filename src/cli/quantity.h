// SPDX-License-Identifier: Apache-2.0
// Lengths of time, points in time and sizes as they are written on a command line.
#pragma once

#include <cstdint>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

/// Seconds of "12h", "30d", "2w", "6m", "1y" or a sum such as "1y6m". A month counts 31 days
/// and a year 366, so that what is kept for so long is never kept for less.
[[nodiscard]] Result<std::uint64_t> parse_duration(std::string_view text);

/// "2027-01-01", "2027-01-01T18:30" or "2027-01-01T18:30:15" in local time; a Z behind it
/// means UTC. kInvalid for times that no calendar has.
[[nodiscard]] Result<Timestamp> parse_time(std::string_view text);

/// Bytes of "50M": a number with K, M, G or T for powers of 1024, or with none.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace varve::cli
