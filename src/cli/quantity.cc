// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <charconv>
#include <ctime>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace varve::cli {
namespace {

constexpr std::uint64_t kDay = 86400;
constexpr std::uint64_t kDurationMax = 10000 * 366 * kDay;
constexpr std::uint64_t kWaitMax = 366 * kDay;

struct Unit {
  std::string_view name;
  std::uint64_t seconds;
};
constexpr Unit kDurationUnits[] = {
    {"h", 3600}, {"d", kDay}, {"w", 7 * kDay}, {"m", 31 * kDay}, {"y", 366 * kDay}};
constexpr Unit kWaitUnits[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", kDay}};

/// Returns the seconds of a sum of numbers, each with a unit; nullopt for another form, or for more
/// than `most` seconds.
std::optional<std::uint64_t> sum_of_units(std::string_view text, std::span<const Unit> units,
                                          std::uint64_t most) {
  std::uint64_t seconds = 0;
  do {
    std::uint64_t count = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (failure != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
    text.remove_prefix(name.size());
    std::uint64_t unit_seconds = 0;
    for (const Unit& unit : units) {
      if (unit.name == name) unit_seconds = unit.seconds;
    }
    if (unit_seconds == 0 || count > (most - seconds) / unit_seconds) return std::nullopt;
    seconds += count * unit_seconds;
  } while (!text.empty());
  return seconds;
}

Error no_time(std::string_view text) {
  return usage_error("\"" + std::string(text) +
                     "\" is not a time; write 2027-01-01 or 2027-01-01T18:30");
}

/// Takes exactly `digits` digits, preceded by `before` unless `before` is 0.
bool take_digits(std::string_view& text, char before, std::size_t digits, int& value) {
  if (before != 0) {
    if (!text.starts_with(before)) return false;
    text.remove_prefix(1);
  }
  if (text.size() < digits) return false;
  value = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return true;
}

}  // namespace

Result<std::uint64_t> parse_duration(std::string_view text) {
  if (const auto seconds = sum_of_units(text, kDurationUnits, kDurationMax)) return *seconds;
  return usage_error("\"" + std::string(text) +
                     "\" is not a length of time; write 12h, 30d, 2w, 6m or 1y");
}

Result<std::chrono::seconds> parse_wait(std::string_view text) {
  const auto seconds = text == "0" ? 0 : sum_of_units(text, kWaitUnits, kWaitMax);
  if (seconds) return std::chrono::seconds(*seconds);
  return usage_error("\"" + std::string(text) +
                     "\" is no time to wait for a lock; write 0, 30s, 10min, 2h or 1d");
}

Result<Timestamp> parse_time(std::string_view text) {
  std::string_view rest = text;
  const bool utc = rest.ends_with('Z');
  if (utc) rest.remove_suffix(1);
  std::tm parts{};
  if (!take_digits(rest, 0, 4, parts.tm_year) || !take_digits(rest, '-', 2, parts.tm_mon) ||
      !take_digits(rest, '-', 2, parts.tm_mday)) {
    return no_time(text);
  }
  if (!rest.empty()) {
    if (!take_digits(rest, 'T', 2, parts.tm_hour) || !take_digits(rest, ':', 2, parts.tm_min)) {
      return no_time(text);
    }
    if (!rest.empty() && !take_digits(rest, ':', 2, parts.tm_sec)) return no_time(text);
    if (!rest.empty()) return no_time(text);
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  parts.tm_isdst = -1;
  // The C library takes the 31st of April for the 1st of May.
  std::tm normal = parts;
  const std::time_t seconds = utc ? ::timegm(&normal) : ::mktime(&normal);
  const bool real = normal.tm_year == parts.tm_year && normal.tm_mon == parts.tm_mon &&
                    normal.tm_mday == parts.tm_mday && parts.tm_hour < 24 && parts.tm_min < 60 &&
                    parts.tm_sec < 60;
  if (!real) return no_time(text);
  return Timestamp{seconds, 0};
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kPowers = "KMGT";
  const Error wrong(
      ErrorCode::kUsage,
      "\"" + std::string(text) + "\" is not a size; write a number, such as 50000 or 50M");
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data(), last, value);
  if (failure != std::errc{}) return wrong;
  unsigned shift = 0;
  if (end != last) {
    const std::size_t power = kPowers.find(*end);
    if (power == std::string_view::npos || end + 1 != last) return wrong;
    shift = 10 * (static_cast<unsigned>(power) + 1);
  }
  if (value > (std::numeric_limits<std::uint64_t>::max() >> shift)) return wrong;
  return value << shift;
}

}  // namespace varve::cli
