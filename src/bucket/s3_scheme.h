// SPDX-License-Identifier: Apache-2.0
// The places of S3-compatible object stores: s3://BUCKET/PREFIX.
#pragma once

#include <memory>
#include <string_view>

#include "bucket/bucket.h"
#include "bucket/location.h"
#include "bucket/s3_tuning.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::bucket {

inline constexpr std::string_view kS3Begin = "s3://";

/// Parses "s3://BUCKET", "s3://BUCKET/" or "s3://BUCKET/PREFIX", with or without a last slash.
/// Errors: kInvalid with advice.
[[nodiscard]] Result<Location> parse_s3(std::string_view place);

/// Returns the bucket of a place, as make_bucket() does.
[[nodiscard]] Result<std::unique_ptr<Bucket>> make_s3(const Location& location,
                                                      const ObjectStoreOptions& options,
                                                      S3Tuning tuning);

}  // namespace varve::bucket
