// SPDX-License-Identifier: Apache-2.0
#include "catalog/version_origin.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <span>

#include "catalog/claimed_time.h"
#include "varve/copy_name.h"
#include "varve/version_name.h"

namespace varve::catalog {
namespace {

constexpr std::uint32_t kNanosecondsLast = 999'999'999;
constexpr std::size_t kIdDigits = 32;

/// Splits the value of an attribute into words with one space between them. Returns false for
/// another number of words.
bool split(std::string_view text, std::span<std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto end = i + 1 == words.size() ? text.size() : text.find(' ');
    if (end == std::string_view::npos || end == 0) return false;
    words[i] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words.back().find(' ') == std::string_view::npos;
}

template <typename Number>
bool parse(std::string_view word, Number& number) {
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
}

template <typename Number>
bool parse_id(std::string_view word, Number& id) {
  std::uint32_t value = 0;
  if (!parse(word, value) || value == 0) return false;
  id = static_cast<Number>(value);
  return true;
}

std::optional<std::string_view> find(const Xattrs& of_root, std::string_view name) {
  const auto found = std::ranges::find(of_root, name, &Xattr::name);
  if (found == of_root.end()) return std::nullopt;
  return found->value;
}

constexpr std::string_view kWhole = "whole";
constexpr std::string_view kIncomplete = "incomplete";
constexpr std::string_view kReceiving = "receiving";

std::string encode(VersionNumber number, const VersionOrigin& origin, std::string_view state) {
  return fmt::format("{} {} {} {} {} {} {}", static_cast<std::uint32_t>(number), origin.repository,
                     static_cast<std::uint32_t>(origin.series),
                     static_cast<std::uint32_t>(origin.number), origin.sealed_at.seconds,
                     origin.sealed_at.nanoseconds, state);
}

/// Returns the origin and sets its state, which the caller checks.
std::optional<VersionOrigin> decode(VersionNumber number, const Xattrs& of_root,
                                    std::string_view& state) {
  const auto text = find(of_root, kOriginAttribute);
  std::array<std::string_view, 7> words;
  VersionNumber of{};
  VersionOrigin origin;
  const bool sound = text && split(*text, words) && parse_id(words[0], of) && of == number &&
                     is_repository_id(words[1]) && parse_id(words[2], origin.series) &&
                     parse_id(words[3], origin.number) &&
                     parse(words[4], origin.sealed_at.seconds) &&
                     parse(words[5], origin.sealed_at.nanoseconds) &&
                     origin.sealed_at.nanoseconds <= kNanosecondsLast;
  if (!sound) return std::nullopt;
  origin.repository = words[1];
  state = words[6];
  return origin;
}

}  // namespace

std::string encode_origin(VersionNumber number, const VersionOrigin& origin) {
  return encode(number, origin, origin.whole ? kWhole : kIncomplete);
}

std::string encode_incomplete(VersionNumber number, std::uint64_t problems) {
  return fmt::format("{} {}", static_cast<std::uint32_t>(number), problems);
}

std::uint64_t problems_of(VersionNumber number, const Xattrs& of_root) {
  const auto text = find(of_root, kIncompleteAttribute);
  std::array<std::string_view, 2> words;
  VersionNumber of{};
  std::uint64_t problems = 0;
  const bool sound = text && split(*text, words) && parse_id(words[0], of) && of == number &&
                     parse(words[1], problems);
  return sound ? problems : 0;
}

void inherit_incomplete(Xattrs& of_root, VersionNumber base, VersionNumber number) {
  const auto problems = problems_of(base, of_root);
  if (problems == 0) return;
  const auto mark = std::ranges::find(of_root, kIncompleteAttribute, &Xattr::name);
  mark->value = encode_incomplete(number, problems);
}

void mark_incomplete(Xattrs& of_root, VersionNumber number) {
  if (problems_of(number, of_root) != 0) return;
  std::erase_if(of_root, [](const Xattr& one) { return one.name == kIncompleteAttribute; });
  const auto place = std::ranges::lower_bound(of_root, kIncompleteAttribute, {}, &Xattr::name);
  of_root.insert(place, {std::string(kIncompleteAttribute), encode_incomplete(number, 1)});
}

std::string encode_receiving(VersionNumber number, const VersionOrigin& origin) {
  return encode(number, origin, kReceiving);
}

std::optional<VersionOrigin> origin_of(VersionNumber number, const Xattrs& of_root) {
  std::string_view state;
  auto origin = decode(number, of_root, state);
  if (!origin || (state != kWhole && state != kIncomplete)) return std::nullopt;
  origin->whole = state == kWhole;
  return origin;
}

std::optional<VersionOrigin> receiving_origin_of(VersionNumber number, const Xattrs& of_root) {
  std::string_view state;
  auto origin = decode(number, of_root, state);
  return state == kReceiving ? origin : std::nullopt;
}

std::string encode_copy_mark(VersionNumber number, const CopyMark& mark) {
  return fmt::format("{} {} {}", static_cast<std::uint32_t>(number),
                     static_cast<std::uint32_t>(mark.base), mark.changes);
}

std::optional<CopyMark> copy_mark_of(VersionNumber number, const Xattrs& of_root) {
  const auto text = find(of_root, kCopyMarkAttribute);
  std::array<std::string_view, 3> words;
  VersionNumber of{};
  std::uint32_t base = 0;
  CopyMark mark;
  const bool sound = text && split(*text, words) && parse_id(words[0], of) && of == number &&
                     parse(words[1], base) && parse(words[2], mark.changes);
  if (!sound) return std::nullopt;
  mark.base = static_cast<VersionNumber>(base);
  return mark;
}

bool is_hidden_attribute(std::string_view name) {
  return name == kClaimedAttribute || name == kIncompleteAttribute || name == kOriginAttribute ||
         name == kCopyMarkAttribute;
}

void hide_own_attributes(Xattrs& of_root) {
  std::erase_if(of_root, [](const Xattr& xattr) { return is_hidden_attribute(xattr.name); });
}

}  // namespace varve::catalog

namespace varve {
namespace {

constexpr std::string_view kReceivingPrefix = "copy-";

}  // namespace

std::string receiving_name(const VersionOrigin& origin) {
  return fmt::format("{}{}-{}", kReceivingPrefix, origin.repository,
                     static_cast<std::uint32_t>(origin.number));
}

std::string receiving_repository(std::string_view name) {
  if (!is_receiving_name(name)) return {};
  return std::string(name.substr(kReceivingPrefix.size(), catalog::kIdDigits));
}

bool is_receiving_name(std::string_view name) {
  name = without_partial_suffix(name);
  if (!name.starts_with(kReceivingPrefix)) return false;
  name.remove_prefix(kReceivingPrefix.size());
  const std::size_t digits = std::min(name.size(), catalog::kIdDigits);
  VersionNumber number{};
  return is_repository_id(name.substr(0, digits)) && name.substr(digits).starts_with('-') &&
         catalog::parse_id(name.substr(digits + 1), number);
}

}  // namespace varve
