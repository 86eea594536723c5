// SPDX-License-Identifier: Apache-2.0
#include "remote/bucket_hooks.h"

#include <memory>
#include <string>

#include "base/log.h"
#include "bucket/location.h"
#include "bucket/open_bucket.h"

namespace varve::remote {

namespace {

// The interval of log messages about a lasting fault of the store.
constexpr std::chrono::minutes kTellsAgain{5};

Result<std::unique_ptr<bucket::Bucket>> open_store(const BucketConfig& config,
                                                   const StoreAccess& access) {
  if (!access) {
    return Error(ErrorCode::kUnsupported, "this program has no access to object stores");
  }
  VARVE_TRY_ASSIGN(const auto location, bucket::parse_location(config.place));
  VARVE_TRY_ASSIGN(const auto options, access({config.place, config.endpoint, config.region}));
  bucket::S3Tuning tuning;
  using Clock = std::chrono::steady_clock;
  tuning.trouble = [place = config.place, told = std::string(),
                    at = Clock::time_point()](const std::string& trouble) mutable {
    const auto now = Clock::now();
    if (trouble.empty() || (trouble == told && now - at < kTellsAgain)) return;
    told = trouble;
    at = now;
    base::log(base::LogLevel::kWarning, place + ": " + trouble + "; trying again");
  };
  return bucket::make_bucket(location, options, tuning);
}

}  // namespace

BucketOpener bucket_opener(const BucketHooks& hooks, const StoreAccess& access) {
  if (hooks.open) return hooks.open;
  return [access](const BucketConfig& config) { return open_store(config, access); };
}

}  // namespace varve::remote
