// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "bucket/s3_answers.h"

namespace varve::bucket {
namespace {

constexpr std::chrono::seconds kWaitLeastMax{20};

// Errors of the store that need more than the status.
struct KnownError {
  std::string_view name;
  NextStep step;
  ErrorCode code;
  std::string_view advice;
};
constexpr auto kKnownErrors = std::to_array<KnownError>({
    {"NoSuchBucket", NextStep::kFail, ErrorCode::kInvalid,
     "there is no such bucket; create it, or correct its name"},
    {"InvalidBucketName", NextStep::kFail, ErrorCode::kInvalid, "the name of the bucket is wrong"},
    {"NoSuchKey", NextStep::kFail, ErrorCode::kNotFound, "there is no such object"},
    {"NoSuchUpload", NextStep::kFail, ErrorCode::kNotFound, "there is no such upload"},
    {"QuotaExceeded", NextStep::kFail, ErrorCode::kNoSpace, "the quota is used up"},
    {"TooManyBuckets", NextStep::kFail, ErrorCode::kNoSpace, "the quota is used up"},
    {"InsufficientStorage", NextStep::kFail, ErrorCode::kNoSpace, "the store is full"},
    {"StorageFull", NextStep::kFail, ErrorCode::kNoSpace, "the store is full"},
    {"XMinioStorageFull", NextStep::kFail, ErrorCode::kNoSpace, "the store is full"},
    {"EntityTooLarge", NextStep::kFail, ErrorCode::kTooLarge, "the object is too large"},
    {"InvalidAccessKeyId", NextStep::kFailAndRenew, ErrorCode::kNotPermitted,
     "the store does not know the access key id; check the credentials"},
    {"SignatureDoesNotMatch", NextStep::kFailAndRenew, ErrorCode::kNotPermitted,
     "the signature is wrong; check the secret access key"},
    {"InvalidToken", NextStep::kFailAndRenew, ErrorCode::kNotPermitted,
     "the session token is wrong; check the credentials"},
    {"InvalidObjectState", NextStep::kFail, ErrorCode::kNotPermitted,
     "the object is in an archive; restore it there first"},
    {"NotImplemented", NextStep::kFail, ErrorCode::kUnsupported, "the store lacks this operation"},
    {"ExpiredToken", NextStep::kNewCredentials, ErrorCode::kNotPermitted,
     "the credentials have expired; give new ones"},
    {"TokenRefreshRequired", NextStep::kNewCredentials, ErrorCode::kNotPermitted,
     "the credentials have expired; give new ones"},
    {"RequestTimeTooSkewed", NextStep::kOtherClock, ErrorCode::kNotPermitted,
     "the clock of this machine is wrong; set it"},
    {"RequestTimeout", NextStep::kRepeat, ErrorCode::kUnavailable, "the store waited too long"},
    {"IncompleteBody", NextStep::kRepeat, ErrorCode::kUnavailable, "the store lost a part"},
    {"BadDigest", NextStep::kRepeatWrong, ErrorCode::kCorrupt, "the store received other bytes"},
    {"InvalidDigest", NextStep::kRepeatWrong, ErrorCode::kCorrupt, "the store refuses a checksum"},
    {"XAmzContentSHA256Mismatch", NextStep::kRepeatWrong, ErrorCode::kCorrupt,
     "the store received other bytes"},
});

KnownError known_status(int status) {
  const auto fail = [](ErrorCode code, std::string_view advice) {
    return KnownError{{}, NextStep::kFail, code, advice};
  };
  switch (status) {
    case 401:
    case 403:
      return fail(ErrorCode::kNotPermitted,
                  "the store refuses this; check the credentials and their rights");
    case 404:
      return fail(ErrorCode::kNotFound, "there is no such object");
    case 405:
    case 501:
      return fail(ErrorCode::kUnsupported, "the store lacks this operation");
    case 412:
      return fail(ErrorCode::kExists, "the object exists");
    case 413:
      return fail(ErrorCode::kTooLarge, "the object is too large");
    case 416:
      return fail(ErrorCode::kInvalid, "the object is shorter");
    case 507:
      return fail(ErrorCode::kNoSpace, "the store is full");
    default:
      break;
  }
  if (status == 408 || status == 409 || status == 429 || (status >= 500 && status <= 599)) {
    return {{}, NextStep::kRepeat, ErrorCode::kUnavailable, "the store cannot answer now"};
  }
  if (status >= 300 && status <= 399) {
    return fail(ErrorCode::kInvalid, "the store is elsewhere; set its endpoint and region");
  }
  if (status >= 400 && status <= 499) {
    return fail(ErrorCode::kIo, "the store refuses the request");
  }
  return {{}, NextStep::kRepeatWrong, ErrorCode::kCorrupt, "the store gave a strange answer"};
}

Judgement judge_failure(const HttpAnswer& answer, const std::string& place) {
  const auto failed = [&](NextStep step, ErrorCode code, std::string_view advice) {
    return Judgement{.step = step,
                     .error = Error(code, fmt::format("{}: {}{}", place, advice, answer.trouble))};
  };
  switch (answer.outcome) {
    case HttpOutcome::kNotTrusted:
      return failed(NextStep::kFail, ErrorCode::kNotPermitted,
                    "the store's certificate is not valid: ");
    case HttpOutcome::kNotPossible:
      return failed(NextStep::kFail, ErrorCode::kInvalid, "the store cannot be reached: ");
    case HttpOutcome::kTooLong:
    case HttpOutcome::kWrongAnswer:
      return failed(NextStep::kRepeatWrong, ErrorCode::kCorrupt, "the store gave a wrong answer: ");
    default:
      return failed(NextStep::kRepeat, ErrorCode::kUnavailable, "the store does not answer: ");
  }
}

std::chrono::milliseconds wait_of(std::string_view retry_after) {
  unsigned seconds = 0;
  std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(), seconds);
  return std::min(std::chrono::seconds(seconds), kWaitLeastMax);
}

Judgement judge_success(const S3Request& request, const HttpAnswer& answer,
                        const std::string& place) {
  if (!request.check) return {};
  const auto checked = request.check({.status = answer.status,
                                      .headers = answer.headers,
                                      .body = answer.body,
                                      .out_bytes = answer.out_bytes});
  if (checked) return {};
  const auto code = checked.error().code();
  const auto step = code == ErrorCode::kUnavailable ? NextStep::kRepeat
                    : code == ErrorCode::kCorrupt   ? NextStep::kRepeatWrong
                                                    : NextStep::kFail;
  return {.step = step, .error = Error(checked.error()).with_context(place)};
}

}  // namespace

bool is_region_name(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Judgement judge(const S3Request& request, const HttpAnswer& answer, const std::string& place,
                const std::string& region) {
  if (answer.outcome == HttpOutcome::kTooLong && answer.status == 200 && request.is_object) {
    return {.step = NextStep::kFail,
            .error = Error(ErrorCode::kTooLarge, place + ": the object is larger than expected")};
  }
  if (answer.outcome != HttpOutcome::kAnswered) return judge_failure(answer, place);
  const bool is_success = answer.status >= 200 && answer.status <= 299;
  if (is_success || (answer.status == request.accepted && answer.status != 0)) {
    return judge_success(request, answer, place);
  }

  const auto told = read_store_error(answer.body);
  const auto* const found =
      std::ranges::find(kKnownErrors, std::string_view(told.code), &KnownError::name);
  auto known = found == kKnownErrors.end() ? known_status(answer.status) : *found;
  Judgement judgement{.wait_least = wait_of(answer.header("retry-after"))};

  auto other = std::string(answer.header("x-amz-bucket-region"));
  if (other.empty()) other = told.region;
  // Only these answers mean a wrong region; a store may name its region in any error.
  const bool is_elsewhere = answer.status == 301 || answer.status == 307 ||
                            (answer.status == 400 && request.method == "HEAD") ||
                            told.code == "AuthorizationHeaderMalformed";
  if (is_elsewhere && other != region && is_region_name(other)) {
    known.step = NextStep::kOtherRegion;
    judgement.region = std::move(other);
  }
  if (known.step == NextStep::kOtherClock) {
    judgement.store_time = parse_http_time(std::string(answer.header("date")));
    if (!judgement.store_time) known.step = NextStep::kFail;
  }
  judgement.step = known.step;
  judgement.error =
      Error(known.code, fmt::format("{}: {} (HTTP {}{}{}{}{})", place, known.advice, answer.status,
                                    told.code.empty() ? "" : ", ", told.code,
                                    told.message.empty() ? "" : ": ", told.message));
  return judgement;
}

}  // namespace varve::bucket
