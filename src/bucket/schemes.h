// SPDX-License-Identifier: Apache-2.0
// The table of the kinds of object stores.
#pragma once

#include <memory>
#include <string_view>

#include "bucket/location.h"
#include "bucket/s3_tuning.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::bucket {

class Bucket;

/// A kind of object store: the form of the places, and the access to the buckets.
struct Scheme {
  std::string_view begin;  ///< The begin of each place, such as "s3://".
  /// Parses a place, as parse_location() does. Errors: kInvalid with advice.
  Result<Location> (*parse)(std::string_view place);
  /// Returns the bucket of a place, as make_bucket() does.
  Result<std::unique_ptr<Bucket>> (*make)(const Location& location,
                                          const ObjectStoreOptions& options, S3Tuning tuning);
};

/// Returns the kind of a place; null for any other text.
[[nodiscard]] const Scheme* find_scheme(std::string_view place);

}  // namespace varve::bucket
