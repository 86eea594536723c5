// SPDX-License-Identifier: Apache-2.0
// An operation of the S3 protocol, and the judgement of its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "bucket/http_engine.h"
#include "bucket/signer.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::bucket {

/// Limit for the document of an error or of a small answer, in bytes.
inline constexpr std::size_t kSmallAnswerBytesMax = 65536;
/// Limit for the document of a page of a list, in bytes: 1,000 names of 1,024 encoded bytes.
inline constexpr std::size_t kPageBytesMax = std::size_t{8} << 20;

/// The answer to a successful request, or an answer with a status accepted by the request.
struct S3Answer {
  int status = 0;
  Fields headers{};
  std::string body{};
  std::size_t out_bytes = 0;
};

/// An operation. The bytes of `parts` and `out` must stay valid until the operation's end.
struct S3Request {
  RequestKind kind = RequestKind::kGet;
  std::string method{};
  std::string key{};  ///< The whole name of the object; empty for the bucket itself.
  Fields query{};
  Fields headers{};  ///< Without the headers common to all requests.
  std::vector<std::span<const std::byte>> parts{};
  std::uint64_t body_bytes = 0;
  bool has_body = false;
  std::string payload_sha256{};
  std::optional<std::span<std::byte>> out{};
  std::size_t answer_bytes_max = kSmallAnswerBytesMax;
  bool is_object = false;  ///< The answer is an object: a longer object fails with kTooLarge.
  int accepted = 0;        ///< A status besides 2xx that is no error.
  bool is_change = false;  ///< Waits as long as a change may, instead of as long as a read.
  bool may_repeat = true;  ///< False for a request worth only one try.
  /// Checks an answer with status 2xx or `accepted`. Errors: kCorrupt for a wrong answer;
  /// kUnavailable for an answer reporting a transient failure. The client then repeats the request.
  std::function<Result<void>(const S3Answer&)> check{};
};

/// The next step after an answer.
enum class NextStep : std::uint8_t {
  kEnd,             ///< The request succeeded.
  kFail,            ///< The request fails with the error.
  kFailAndRenew,    ///< As kFail; later requests use renewed credentials.
  kRepeat,          ///< The request is repeated after a wait.
  kRepeatWrong,     ///< As kRepeat, but only a few times: the store answered wrongly.
  kNewCredentials,  ///< The request is repeated with other credentials.
  kOtherRegion,     ///< The request is repeated for another region.
  kOtherClock,      ///< The request is repeated with the time of the store.
};

struct Judgement {
  NextStep step = NextStep::kEnd;
  std::optional<Error> error{};             ///< The error, for all steps but kEnd.
  std::string region{};                     ///< The region, for kOtherRegion.
  std::optional<Timestamp> store_time{};    ///< The store's time, for kOtherClock.
  std::chrono::milliseconds wait_least{0};  ///< The wait requested by the store.
};

/// Judges the answer to a request. `place` names the object or bucket in messages; `region` is the
/// region in the request's signature.
[[nodiscard]] Judgement judge(const S3Request& request, const HttpAnswer& answer,
                              const std::string& place, const std::string& region);

/// Returns whether a text can be the name of a region: 1 to 32 of a-z, 0-9 and "-".
[[nodiscard]] bool is_region_name(std::string_view text);

}  // namespace varve::bucket
