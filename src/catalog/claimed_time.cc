// SPDX-License-Identifier: Apache-2.0
#include "catalog/claimed_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace varve::catalog {
namespace {

constexpr std::uint32_t kNanosecondsMax = 999'999'999;

/// Removes a number and the space or end after it from `text`.
template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (text.empty()) return true;
  if (text.front() != ' ') return false;
  text.remove_prefix(1);
  return !text.empty();
}

}  // namespace

std::string encode_claimed_time(VersionNumber number, const Timestamp& time) {
  return fmt::format("{} {} {}", static_cast<std::uint32_t>(number), time.seconds,
                     time.nanoseconds);
}

std::optional<Timestamp> claimed_time(VersionNumber number, const Xattrs& of_root) {
  const auto found = std::ranges::find(of_root, kClaimedAttribute, &Xattr::name);
  if (found == of_root.end()) return std::nullopt;
  std::string_view text = found->value;
  std::uint32_t of = 0;
  Timestamp time;
  const bool sound = take_number(text, of) && take_number(text, time.seconds) &&
                     take_number(text, time.nanoseconds) && text.empty();
  if (!sound || static_cast<VersionNumber>(of) != number || time.nanoseconds > kNanosecondsMax) {
    return std::nullopt;
  }
  return time;
}

}  // namespace varve::catalog
