// SPDX-License-Identifier: Apache-2.0
#include "bucket/schemes.h"

#include <algorithm>
#include <array>

#include "bucket/s3_scheme.h"

namespace varve::bucket {
namespace {

// One row for each kind. No place begins as two rows.
constexpr std::array<Scheme, 1> kSchemes = {{
    {kS3Begin, parse_s3, make_s3},
}};

}  // namespace

const Scheme* find_scheme(std::string_view place) {
  const auto scheme = std::ranges::find_if(
      kSchemes, [place](const Scheme& row) { return place.starts_with(row.begin); });
  return scheme == kSchemes.end() ? nullptr : &*scheme;
}

}  // namespace varve::bucket
