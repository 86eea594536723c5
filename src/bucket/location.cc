// SPDX-License-Identifier: Apache-2.0
#include "bucket/location.h"

#include <fmt/core.h>

#include <algorithm>

#include "bucket/bucket.h"

namespace varve::bucket {
namespace {

constexpr std::string_view kScheme = "s3://";
// Room for the names below the prefix.
constexpr std::size_t kPrefixBytesMax = 512;

bool is_bucket_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.size() < 3 || name.size() > 63) return false;
  if (!is_letter(name.front()) || !is_letter(name.back())) return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::ranges::all_of(name, [&](char c) { return is_letter(c) || c == '-' || c == '.'; });
}

}  // namespace

bool is_location(std::string_view path) { return path.starts_with(kScheme); }

Result<Location> parse_location(std::string_view text) {
  const auto invalid = [&](std::string_view advice) {
    return Error(ErrorCode::kInvalid, fmt::format("{}: {}", text, advice));
  };
  if (!is_location(text)) return invalid("the place of an object store is s3://BUCKET/PREFIX");
  const auto rest = text.substr(kScheme.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  Location location{.bucket = std::string(rest.substr(0, slash))};
  if (!is_bucket_name(location.bucket)) {
    return invalid("the name of a bucket has 3 to 63 of the characters a-z, 0-9, - and .");
  }
  auto prefix = rest.substr(std::min(slash + 1, rest.size()));
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty()) {
    if (rest.size() > slash + 1) return invalid("the prefix must not begin with /");
    return location;
  }
  if (prefix.size() > kPrefixBytesMax || !is_valid_name(prefix, 0)) {
    return invalid(fmt::format(
        "a prefix has at most {} bytes of UTF-8 without control characters such as a newline or a "
        "tab, and no empty part, no . and no .. between slashes",
        kPrefixBytesMax));
  }
  location.prefix = std::string(prefix) + "/";
  return location;
}

std::string text_of(const Location& location) {
  auto text = std::string(kScheme) + location.bucket + "/" + location.prefix;
  text.pop_back();
  return text;
}

}  // namespace varve::bucket
