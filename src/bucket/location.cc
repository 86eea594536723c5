// SPDX-License-Identifier: Apache-2.0
#include "bucket/location.h"

#include "bucket/schemes.h"

namespace varve::bucket {

bool is_location(std::string_view path) { return find_scheme(path) != nullptr; }

Result<Location> parse_location(std::string_view text) {
  const Scheme* const scheme = find_scheme(text);
  if (scheme == nullptr) {
    return Error(ErrorCode::kInvalid,
                 std::string(text) + ": the place of an object store is s3://BUCKET/PREFIX");
  }
  VARVE_TRY_ASSIGN(auto location, scheme->parse(text));
  location.begin = scheme->begin;
  return location;
}

std::string text_of(const Location& location) {
  auto text = std::string(location.begin) + location.bucket + "/" + location.prefix;
  text.pop_back();
  return text;
}

}  // namespace varve::bucket
