// SPDX-License-Identifier: Apache-2.0
// Concurrent HTTP requests in one thread. The only user of libcurl.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bucket/signer.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::bucket {

/// Limit for all headers of an answer, in bytes.
inline constexpr std::size_t kAnswerHeaderBytesMax = 65536;

/// A request. The parts and `out` must stay valid until completion or cancellation.
struct HttpRequest {
  std::string method{};
  std::string url{};
  Fields headers{};
  std::span<const std::span<const std::byte>> parts{};  ///< The consecutive parts of the body.
  std::uint64_t body_bytes = 0;                         ///< The length of all parts.
  bool has_body = false;                                ///< Sends a body, even an empty one.
  /// Receives the body of an answer with status 200 or 206. Any other body goes to the answer.
  std::optional<std::span<std::byte>> out{};
  std::size_t answer_bytes_max = 0;     ///< Limit for a body that goes to the answer.
  std::chrono::milliseconds stall{};    ///< Time without any byte after which the request fails.
  std::chrono::milliseconds timeout{};  ///< Time for the whole request.
};

/// The outcome of a request.
enum class HttpOutcome : std::uint8_t {
  kAnswered,     ///< The whole answer has arrived.
  kNotSent,      ///< No connection: the store has not seen the request.
  kBroken,       ///< The connection broke or waited too long; the request may have arrived.
  kWrongAnswer,  ///< The answer is not HTTP, or exceeds a limit.
  kTooLong,      ///< The answer's body exceeds HttpRequest::answer_bytes_max.
  kNotTrusted,   ///< The certificate is not valid for the host.
  kNotPossible,  ///< The URL or the settings are wrong.
};

struct HttpAnswer {
  HttpOutcome outcome = HttpOutcome::kBroken;
  std::string trouble{};  ///< The reason of an outcome other than kAnswered.
  int status = 0;         ///< Such as 200, if answered or too long.
  Fields headers{};       ///< Names in lower case.
  std::string body{};
  std::size_t out_bytes = 0;  ///< Bytes written to HttpRequest::out.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  /// Time from the request to the first byte of the answer, on an existing connection; 0 without a
  /// byte.
  std::chrono::microseconds first_byte_after{0};

  /// Returns the value of a header; empty without the header. Lifetime: as the answer.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

struct HttpSettings {
  bool allows_http = false;  ///< Requests may go to http:// addresses.
  std::string ca_file{};     ///< Certificates to trust instead of the system's.
  std::size_t connections_max = 64;
  std::chrono::milliseconds connect_timeout{10000};
};

/// Runs requests and other work in an internal thread. run() is thread-safe; the other functions
/// must be called only by work in the internal thread. Does not follow redirects. Verifies
/// certificates. Uses the proxy of the environment (https_proxy).
class HttpEngine {
 public:
  using Clock = std::chrono::steady_clock;
  using Work = std::function<void()>;
  using Done = std::function<void(HttpAnswer)>;
  using RequestId = std::uint64_t;

  /// Errors: kIo without memory or a thread.
  [[nodiscard]] static Result<std::unique_ptr<HttpEngine>> create(HttpSettings settings);
  HttpEngine(const HttpEngine&) = delete;
  HttpEngine& operator=(const HttpEngine&) = delete;
  /// Runs the work passed to run(), cancels all requests and timers, and ends the thread.
  ~HttpEngine();

  /// Runs work soon, in the order of the calls.
  void run(Work work);
  /// Runs work at a time.
  void run_at(Clock::time_point time, Work work);
  /// Starts a request. `done` is called once, unless the request is cancelled.
  RequestId start(const HttpRequest& request, Done done);
  /// Ends a request without calling its `done`. An ended request is no error. Afterwards, the
  /// request's memory is not used any more.
  void cancel(RequestId id);

 private:
  class Loop;
  explicit HttpEngine(std::unique_ptr<Loop> loop);
  const std::unique_ptr<Loop> loop_;
};

/// Returns the time of "Sun, 06 Nov 1994 08:49:37 GMT"; nullopt for any other text.
[[nodiscard]] std::optional<Timestamp> parse_http_time(const std::string& text);

}  // namespace varve::bucket
