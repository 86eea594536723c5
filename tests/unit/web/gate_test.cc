// SPDX-License-Identifier: Apache-2.0
#include "web/gate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace varve::web {
namespace {

constexpr std::uint16_t kPort = 8080;
const std::string kToken(64, 'a');

Gate::Verdict verdict(const Request& request) { return Gate(kToken, kPort).judge(request); }

Request request(const std::string& host, const std::string& cookies = "") {
  Request made;
  made.path = "/";
  made.host = host;
  made.cookies = cookies;
  return made;
}

TEST(Gate, CookieAdmits) {
  const std::string good = "varve-8080=" + kToken;
  EXPECT_EQ(verdict(request("localhost:8080", good)), Gate::Verdict::kAdmitted);
  EXPECT_EQ(verdict(request("[::1]:8080", "a=b; " + good)), Gate::Verdict::kAdmitted);
  EXPECT_EQ(verdict(request("127.0.0.1", "varve-8080=old; " + good + "; c=d")),
            Gate::Verdict::kAdmitted);
}

TEST(Gate, OtherCookiesDoNot) {
  const std::vector<std::string> wrong = {"",
                                          "varve-8080=",
                                          "varve-8080",
                                          "varve-8081=" + kToken,
                                          "xvarve-8080=" + kToken,
                                          "varve-8080=" + kToken.substr(1),
                                          "varve-8080=" + kToken + "a",
                                          "varve-8080x=" + kToken,
                                          ";;; ; ;=",
                                          std::string(1, '\0')};
  for (const std::string& cookies : wrong) {
    EXPECT_EQ(verdict(request("localhost", cookies)), Gate::Verdict::kNoToken) << cookies;
  }
}

TEST(Gate, TokenInTheQueryIsExchanged) {
  Request good = request("localhost:8080");
  good.query["token"] = kToken;
  EXPECT_EQ(verdict(good), Gate::Verdict::kExchange);
  good.query["token"] = kToken.substr(1) + "b";
  good.cookies = "varve-8080=" + kToken;
  EXPECT_EQ(verdict(good), Gate::Verdict::kNoToken);
}

TEST(Gate, OtherHostsAreForeignEvenWithTheToken) {
  for (const char* host :
       {"", "example.org", "localhost.example.org", "example.org:8080", "127.0.0.2", "::1", "[::1",
        "localhost:", "localhost:80a", "127.0.0.1:1:2", "LOCALHOST "}) {
    Request foreign = request(host, "varve-8080=" + kToken);
    EXPECT_EQ(verdict(foreign), Gate::Verdict::kForeignHost) << host;
    foreign.query["token"] = kToken;
    EXPECT_EQ(verdict(foreign), Gate::Verdict::kForeignHost) << host;
  }
}

TEST(Token, IsLongAndNeverTheSame) {
  const auto one = make_token();
  const auto two = make_token();
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  EXPECT_EQ(one->size(), 64);
  EXPECT_NE(*one, *two);
  EXPECT_EQ(one->find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(ConstantTime, ComparesAllBytes) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abd", "abc"));
  EXPECT_FALSE(equal_in_constant_time("xbc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("ab", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abcabc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("a", ""));
}

}  // namespace
}  // namespace varve::web
