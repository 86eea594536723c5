// SPDX-License-Identifier: Apache-2.0
// The state of a client, in the thread of the client's requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "bucket/backoff.h"
#include "bucket/endpoint.h"
#include "bucket/get_times.h"
#include "bucket/http_engine.h"
#include "bucket/s3_client.h"

namespace varve::bucket {

/// The engine's thread owns all members except the members used by the public functions.
class S3Client::Core {
 public:
  Core(Endpoint endpoint, std::string bucket, const ObjectStoreOptions& options, S3Tuning tuning,
       std::unique_ptr<HttpEngine> engine);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  void submit(S3Request request, Done done);
  /// Waits until all requests have ended.
  void stop();
  void interrupt_reads();
  [[nodiscard]] Traffic traffic() const;
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const;
  [[nodiscard]] std::optional<std::chrono::microseconds> round_trip() const;

 private:
  using Clock = HttpEngine::Clock;
  /// A request from its beginning to its end.
  struct Call {
    S3Request request{};
    Done done{};
    Clock::time_point begun{};
    unsigned tries = 0;
    unsigned wrong_answers = 0;
    unsigned corrections = 0;  // Repeats with another region, clock or credentials.
    bool has_ended = false;
    std::optional<Error> last_error{};
    std::optional<HttpEngine::RequestId> first{};   // In flight.
    std::optional<HttpEngine::RequestId> second{};  // In flight, besides `first`.
    Clock::time_point first_sent{};
    std::string region{};                 // The region in the last try's signature.
    std::vector<std::byte> second_out{};  // Receives the body of the second get.
  };
  using CallPointer = std::shared_ptr<Call>;

  void begin(const CallPointer& call);
  void start_ready();
  void try_once(const CallPointer& call);
  /// Signs and sends a request. Returns nullopt after an error, which ends the call.
  std::optional<HttpEngine::RequestId> send(const CallPointer& call,
                                            std::optional<std::span<std::byte>> out,
                                            bool is_second);
  [[nodiscard]] Result<HttpRequest> signed_request(const S3Request& request) const;
  void receive(const CallPointer& call, bool is_second, HttpAnswer answer);
  void act(const CallPointer& call, const Judgement& judgement, HttpAnswer& answer);
  void correct(const CallPointer& call, const Judgement& judgement);
  void repeat_after(const CallPointer& call, std::chrono::milliseconds wait);
  void end(const CallPointer& call, Result<S3Answer> answer);
  void cancel(const CallPointer& call);
  void report(const std::string& trouble);

  void schedule_tick();
  void tick();
  [[nodiscard]] std::chrono::milliseconds patience(const S3Request& request) const;
  void send_second(const CallPointer& call);

  [[nodiscard]] bool need_credentials() const;
  void renew_credentials();
  void take_credentials(Result<StoreCredentials> credentials);
  [[nodiscard]] Timestamp now() const;
  [[nodiscard]] std::string place(const S3Request& request) const;

  const Endpoint endpoint_;
  const std::string bucket_;
  const CredentialSource source_;
  const S3Tuning tuning_;
  const base::SystemClock clock_;

  mutable std::mutex mutex_;  // Innermost. Guards the three members below.
  Traffic traffic_{};
  std::optional<std::int64_t> clock_ahead_;  // By the store's latest answer.
  std::optional<std::chrono::microseconds> round_trip_;

  std::string region_;
  std::int64_t clock_offset_ = 0;  // The store's clock minus the local clock, in seconds.
  std::optional<StoreCredentials> credentials_;
  bool are_expired_ = false;
  bool are_renewing_ = false;
  std::set<CallPointer> calls_;
  std::deque<CallPointer> ready_;
  std::size_t in_flight_ = 0;
  bool is_ticking_ = false;
  bool is_stopped_ = false;
  bool is_in_trouble_ = false;
  Backoff backoff_;
  GetTimes get_times_;

  // The work of the next two members refers to the members above, so the two are destroyed first.
  std::unique_ptr<HttpEngine> engine_;
  std::unique_ptr<base::ThreadPool> renewer_;
};

}  // namespace varve::bucket
