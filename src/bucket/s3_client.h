// SPDX-License-Identifier: Apache-2.0
// Signs requests, sends them, and repeats those that fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bucket/bucket.h"
#include "bucket/s3_request.h"
#include "bucket/s3_tuning.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::bucket {

/// Sends requests to one bucket. Thread-safe.
///
/// A request that fails for a passing reason is repeated after a random wait. libcurl also repeats
/// one whose connection was old and broke, so the store may see any request twice. A get that takes
/// 3 times the median of its size is sent a second time, for at most 5 % of them; the first answer
/// counts. The client gets new credentials, follows the store's clock, and follows the bucket to
/// another region of the same store. It sends nothing to another host.
class S3Client {
 public:
  using Done = std::function<void(Result<S3Answer>)>;

  /// Errors: kInvalid for a wrong endpoint or region; kIo.
  [[nodiscard]] static Result<std::unique_ptr<S3Client>> create(const std::string& bucket,
                                                                const ObjectStoreOptions& options,
                                                                S3Tuning tuning);
  S3Client(const S3Client&) = delete;
  S3Client& operator=(const S3Client&) = delete;
  /// Ends all requests as stop().
  ~S3Client();

  /// Sends a request and calls `done` once, from the thread of the requests.
  void submit(S3Request request, Done done);
  /// Sends a request and waits for its end. Not to be called by a `done`.
  [[nodiscard]] Result<S3Answer> call(S3Request request);
  /// Ends all requests, and all later ones, with kInterrupted.
  void stop();
  /// Ends the requests under way that change nothing, with kUnavailable. Does not wait for that.
  void interrupt_reads();

  [[nodiscard]] Traffic traffic() const;
  /// Returns the seconds that the store's clock is ahead by its latest answer; nullopt before that.
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const;
  /// Returns the shortest time from the request of a get to the first byte of its answer; nullopt
  /// before the first one.
  [[nodiscard]] std::optional<std::chrono::microseconds> round_trip() const;

 private:
  class Core;
  explicit S3Client(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
};

}  // namespace varve::bucket
