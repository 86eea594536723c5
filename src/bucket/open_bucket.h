// SPDX-License-Identifier: Apache-2.0
// Opens the bucket of a place in an object store.
#pragma once

#include <memory>

#include "bucket/bucket.h"
#include "bucket/location.h"
#include "bucket/s3_tuning.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::bucket {

/// Returns the bucket of a place, without a request. Errors: kUnsupported in a build without object
/// stores; kInvalid.
[[nodiscard]] Result<std::unique_ptr<Bucket>> make_bucket(const Location& location,
                                                          const ObjectStoreOptions& options,
                                                          S3Tuning tuning);
/// Returns the bucket of a place. Lists one object, so that wrong credentials, a missing bucket or
/// a wrong address fail here.
/// Errors: errors of Bucket; kUnsupported in a build without object stores.
[[nodiscard]] Result<std::unique_ptr<Bucket>> open_bucket(const Location& location,
                                                          const ObjectStoreOptions& options,
                                                          S3Tuning tuning);

}  // namespace varve::bucket
