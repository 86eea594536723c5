// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_client.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "bucket/s3_core.h"

namespace varve::bucket {

S3Client::S3Client(std::unique_ptr<Core> core) : core_(std::move(core)) {}
S3Client::~S3Client() = default;

Result<std::unique_ptr<S3Client>> S3Client::create(const std::string& bucket,
                                                   const ObjectStoreOptions& options,
                                                   S3Tuning tuning) {
  if (!options.region.empty() && !is_region_name(options.region)) {
    return Error(ErrorCode::kInvalid,
                 options.region + ": a region has 1 to 32 of the characters a-z, 0-9 and -");
  }
  if (!options.credentials) return Error(ErrorCode::kNotPermitted, "no credentials for the store");
  VARVE_TRY_ASSIGN(auto endpoint, Endpoint::parse(options.endpoint, bucket));
  HttpSettings settings{.allows_http = endpoint.scheme() == "http",
                        .ca_file = options.ca_file,
                        .connections_max = tuning.requests_max,
                        .connect_timeout = tuning.connect_timeout};
  VARVE_TRY_ASSIGN(auto engine, HttpEngine::create(std::move(settings)));
  return std::unique_ptr<S3Client>(new S3Client(std::make_unique<Core>(
      std::move(endpoint), bucket, options, std::move(tuning), std::move(engine))));
}

void S3Client::submit(S3Request request, Done done) {
  core_->submit(std::move(request), std::move(done));
}

Result<S3Answer> S3Client::call(S3Request request) {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Result<S3Answer>> result;
  submit(std::move(request), [&](Result<S3Answer> got) {
    const std::lock_guard lock(mutex);
    result = std::move(got);
    ended.notify_all();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return result.has_value(); });
  return *std::move(result);
}

void S3Client::stop() { core_->stop(); }
void S3Client::interrupt_reads() { core_->interrupt_reads(); }
Traffic S3Client::traffic() const { return core_->traffic(); }
std::optional<std::int64_t> S3Client::clock_ahead() const { return core_->clock_ahead(); }

std::optional<std::chrono::microseconds> S3Client::round_trip() const {
  return core_->round_trip();
}

}  // namespace varve::bucket
