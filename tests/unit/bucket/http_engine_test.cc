// SPDX-License-Identifier: Apache-2.0
// Requests that reach no store.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "bucket/http_engine.h"

namespace varve::bucket {
namespace {

HttpAnswer answer_to(HttpEngine& engine, const std::string& url) {
  using std::chrono::seconds;
  std::promise<HttpAnswer> answer;
  engine.run([&] {
    HttpRequest request;
    request.method = "GET";
    request.url = url;
    request.answer_bytes_max = 1000;
    request.stall = seconds(30);
    request.timeout = seconds(30);
    engine.start(request, [&](const HttpAnswer& given) { answer.set_value(given); });
  });
  return answer.get_future().get();
}

TEST(HttpEngine, AHostNameThatIsNotFoundCanBeTriedAgain) {
  const auto engine = HttpEngine::create({.allows_http = true});
  ASSERT_TRUE(engine);
  for (int tries = 0; tries < 3; ++tries) {
    const auto answer = answer_to(**engine, "http://store.invalid/bucket");
    EXPECT_EQ(answer.outcome, HttpOutcome::kNotSent) << answer.trouble;
    EXPECT_NE(answer.trouble.find("store.invalid"), std::string::npos) << answer.trouble;
  }
}

}  // namespace
}  // namespace varve::bucket
