// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_request.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace varve::bucket {
namespace {

HttpAnswer answer_of(int status, const std::string& code = {}, Fields headers = {}) {
  return {.outcome = HttpOutcome::kAnswered,
          .status = status,
          .headers = std::move(headers),
          .body = code.empty() ? "" : "<Error><Code>" + code + "</Code></Error>"};
}

Judgement judge_get(const HttpAnswer& answer, int accepted = 0) {
  return judge({.method = "GET", .accepted = accepted}, answer, "s3://b/x", "us-east-1");
}

TEST(Judgement, OnlySuccessEndsARequest) {
  for (const int status : {200, 204, 206}) {
    EXPECT_EQ(judge_get(answer_of(status)).step, NextStep::kEnd);
  }
  for (const int status :
       {0, 100, 199, 300, 301, 304, 400, 403, 404, 412, 416, 500, 503, 600, 999}) {
    const auto judgement = judge_get(answer_of(status));
    EXPECT_NE(judgement.step, NextStep::kEnd) << status;
    EXPECT_TRUE(judgement.error) << status;
  }
  EXPECT_EQ(judge_get(answer_of(416), 416).step, NextStep::kEnd);
}

TEST(Judgement, TellsErrorsApart) {
  struct Case {
    int status;
    std::string code;
    NextStep step;
    ErrorCode error;
  };
  const Case cases[] = {
      {404, "NoSuchKey", NextStep::kFail, ErrorCode::kNotFound},
      {404, "", NextStep::kFail, ErrorCode::kNotFound},
      {404, "NoSuchBucket", NextStep::kFail, ErrorCode::kInvalid},
      {403, "QuotaExceeded", NextStep::kFail, ErrorCode::kNoSpace},
      {507, "", NextStep::kFail, ErrorCode::kNoSpace},
      {403, "AccessDenied", NextStep::kFail, ErrorCode::kNotPermitted},
      {403, "SignatureDoesNotMatch", NextStep::kFailAndRenew, ErrorCode::kNotPermitted},
      {412, "PreconditionFailed", NextStep::kFail, ErrorCode::kExists},
      {501, "NotImplemented", NextStep::kFail, ErrorCode::kUnsupported},
      {400, "EntityTooLarge", NextStep::kFail, ErrorCode::kTooLarge},
      {400, "InvalidArgument", NextStep::kFail, ErrorCode::kIo},
      {400, "RequestTimeout", NextStep::kRepeat, ErrorCode::kUnavailable},
      {400, "ExpiredToken", NextStep::kNewCredentials, ErrorCode::kNotPermitted},
      {400, "BadDigest", NextStep::kRepeatWrong, ErrorCode::kCorrupt},
      {408, "", NextStep::kRepeat, ErrorCode::kUnavailable},
      {409, "ConditionalRequestConflict", NextStep::kRepeat, ErrorCode::kUnavailable},
      {429, "", NextStep::kRepeat, ErrorCode::kUnavailable},
      {500, "InternalError", NextStep::kRepeat, ErrorCode::kUnavailable},
      {502, "", NextStep::kRepeat, ErrorCode::kUnavailable},
      {503, "SlowDown", NextStep::kRepeat, ErrorCode::kUnavailable},
      {302, "", NextStep::kFail, ErrorCode::kInvalid},
      {0, "", NextStep::kRepeatWrong, ErrorCode::kCorrupt},
  };
  for (const auto& each : cases) {
    const auto judgement = judge_get(answer_of(each.status, each.code));
    EXPECT_EQ(judgement.step, each.step) << each.status << " " << each.code;
    ASSERT_TRUE(judgement.error) << each.status << " " << each.code;
    EXPECT_EQ(judgement.error->code(), each.error) << each.status << " " << each.code;
  }
}

TEST(Judgement, WaitsAsLongAsTheStoreAsksWithinALimit) {
  const auto wait = [](const std::string& text) {
    return judge_get(answer_of(503, "", {{"retry-after", text}})).wait_least.count();
  };
  EXPECT_EQ(wait("5"), 5000);
  EXPECT_EQ(wait("86400"), 20000);
  EXPECT_EQ(wait("-1"), 0);
  EXPECT_EQ(wait("Sun, 06 Nov 1994 08:49:37 GMT"), 0);
  EXPECT_EQ(wait(""), 0);
}

TEST(Judgement, TakesARegionOnlyFromAnErrorAboutIt) {
  const auto region = [](int status, const std::string& code, const std::string& name) {
    return judge_get(answer_of(status, code, {{"x-amz-bucket-region", name}})).region;
  };
  EXPECT_EQ(region(301, "PermanentRedirect", "eu-1"), "eu-1");
  EXPECT_EQ(region(400, "AuthorizationHeaderMalformed", "eu-1"), "eu-1");
  EXPECT_EQ(region(301, "", "us-east-1"), "") << "the same region";
  EXPECT_EQ(region(301, "", "evil.example"), "");
  EXPECT_EQ(region(301, "", std::string(33, 'a')), "");
  EXPECT_EQ(region(403, "AccessDenied", "eu-1"), "");
  EXPECT_EQ(region(404, "NoSuchKey", "eu-1"), "");
}

TEST(Judgement, AClockNeedsADate) {
  const Fields date = {{"date", "Sun, 06 Nov 1994 08:49:37 GMT"}};
  const auto judgement = judge_get(answer_of(403, "RequestTimeTooSkewed", date));
  EXPECT_EQ(judgement.step, NextStep::kOtherClock);
  EXPECT_EQ(judgement.store_time->seconds, 784111777);
  EXPECT_EQ(judge_get(answer_of(403, "RequestTimeTooSkewed")).step, NextStep::kFail);
}

}  // namespace
}  // namespace varve::bucket
