// SPDX-License-Identifier: Apache-2.0
// Signs and sends requests, and repeats failed requests.
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
/// After a transient failure, the client repeats a request after a random wait. libcurl also
/// repeats a request on an old, broken connection, so the store may see any request twice. A get
/// taking 3 times the median of its size is sent a second time, for at most 5 % of all gets; the
/// first answer counts. The client gets new credentials, follows the store's clock, and follows the
/// bucket to another region of the same store. The client sends nothing to any other host.
class S3Client {
 public:
  using Done = std::function<void(Result<S3Answer>)>;

  /// Sends no request. Errors: kInvalid for a wrong endpoint or region; kIo.
  [[nodiscard]] static Result<std::unique_ptr<S3Client>> create(const std::string& bucket,
                                                                const ObjectStoreOptions& options,
                                                                S3Tuning tuning);
  S3Client(const S3Client&) = delete;
  S3Client& operator=(const S3Client&) = delete;
  /// Ends all requests as stop().
  ~S3Client();

  /// Sends a request and calls `done` once, from the thread of the requests.
  void submit(S3Request request, Done done);
  /// Sends a request and waits for its end. Must not be called by a `done`.
  [[nodiscard]] Result<S3Answer> call(S3Request request);
  /// Ends all current and later requests with kInterrupted.
  void stop();
  /// Ends the requests in flight that change nothing, with kUnavailable. Does not wait for their
  /// end.
  void interrupt_reads();

  [[nodiscard]] Traffic traffic() const;
  /// Returns the seconds by which the store's clock is ahead, as of the latest answer; nullopt
  /// before the first answer.
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const;
  /// Returns the shortest time from the request of a get to the first byte of its answer; nullopt
  /// before the first answer.
  [[nodiscard]] std::optional<std::chrono::microseconds> round_trip() const;

 private:
  class Core;
  explicit S3Client(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
};

}  // namespace varve::bucket
