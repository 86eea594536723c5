// SPDX-License-Identifier: Apache-2.0
// Parses lengths of time, points in time and sizes from a command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

/// Returns the seconds of "12h", "30d", "2w", "6m", "1y" or a sum such as "1y6m". A month counts 31
/// days and a year 366 days, the longest possible lengths.
[[nodiscard]] Result<std::uint64_t> parse_duration(std::string_view text);

/// Parses "0", "30s", "10min", "2h", "1d" or a sum such as "1h30min".
/// Errors: kUsage for another form, also for "10m", because `m` is a month in other durations.
[[nodiscard]] Result<std::chrono::seconds> parse_wait(std::string_view text);

/// Parses "2027-01-01", "2027-01-01T18:30" or "2027-01-01T18:30:15" in local time, or in UTC with a
/// Z at the end.
/// Errors: kInvalid for any other form, and for times absent from the calendar.
[[nodiscard]] Result<Timestamp> parse_time(std::string_view text);

/// Returns the bytes of a number such as "50M", with K, M, G or T for powers of 1024, or without a
/// unit.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace varve::cli
