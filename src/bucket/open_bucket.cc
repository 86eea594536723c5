// SPDX-License-Identifier: Apache-2.0
#include "bucket/open_bucket.h"

#include <utility>

#include "base/assert.h"
#include "bucket/schemes.h"

namespace varve::bucket {

Result<std::unique_ptr<Bucket>> make_bucket(const Location& location,
                                            const ObjectStoreOptions& options, S3Tuning tuning) {
  const Scheme* const scheme = find_scheme(location.begin);
  VARVE_ASSERT(scheme != nullptr);
  return scheme->make(location, options, std::move(tuning));
}

Result<std::unique_ptr<Bucket>> open_bucket(const Location& location,
                                            const ObjectStoreOptions& options, S3Tuning tuning) {
  VARVE_TRY_ASSIGN(auto bucket, make_bucket(location, options, std::move(tuning)));
  VARVE_TRY(bucket->list({}, {}, 1));
  return bucket;
}

}  // namespace varve::bucket
