// SPDX-License-Identifier: Apache-2.0
#include "bucket/open_bucket.h"

#include <utility>

#ifndef VARVE_STATIC
#include "bucket/s3_bucket.h"
#endif

namespace varve::bucket {

#ifdef VARVE_STATIC
Result<std::unique_ptr<Bucket>> make_bucket(const Location& location,
                                            const ObjectStoreOptions& /*options*/,
                                            S3Tuning /*tuning*/) {
  return Error(ErrorCode::kUnsupported,
               text_of(location) + ": this build of Varve has no object stores");
}
#else
Result<std::unique_ptr<Bucket>> make_bucket(const Location& location,
                                            const ObjectStoreOptions& options, S3Tuning tuning) {
  VARVE_TRY_ASSIGN(auto bucket, S3Bucket::create(location, options, std::move(tuning)));
  return std::unique_ptr<Bucket>(std::move(bucket));
}
#endif

Result<std::unique_ptr<Bucket>> open_bucket(const Location& location,
                                            const ObjectStoreOptions& options, S3Tuning tuning) {
  VARVE_TRY_ASSIGN(auto bucket, make_bucket(location, options, std::move(tuning)));
  VARVE_TRY(bucket->list({}, {}, 1));
  return bucket;
}

}  // namespace varve::bucket
