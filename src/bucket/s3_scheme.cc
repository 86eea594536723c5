// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_scheme.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#ifndef VARVE_STATIC
#include "bucket/s3_bucket.h"
#endif

namespace varve::bucket {
namespace {

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

Result<Location> parse_s3(std::string_view place) {
  const auto invalid = [&](std::string_view advice) {
    return Error(ErrorCode::kInvalid, fmt::format("{}: {}", place, advice));
  };
  const auto rest = place.substr(kS3Begin.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  Location location;
  location.bucket = std::string(rest.substr(0, slash));
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

#ifdef VARVE_STATIC
Result<std::unique_ptr<Bucket>> make_s3(const Location& location,
                                        const ObjectStoreOptions& /*options*/,
                                        S3Tuning /*tuning*/) {
  return Error(ErrorCode::kUnsupported,
               text_of(location) + ": this build of Varve has no object stores");
}
#else
Result<std::unique_ptr<Bucket>> make_s3(const Location& location, const ObjectStoreOptions& options,
                                        S3Tuning tuning) {
  VARVE_TRY_ASSIGN(auto bucket, S3Bucket::create(location, options, std::move(tuning)));
  return std::unique_ptr<Bucket>(std::move(bucket));
}
#endif

}  // namespace varve::bucket
