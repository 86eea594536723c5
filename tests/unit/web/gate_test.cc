// SPDX-License-Identifier: Apache-2.0
#include "web/gate.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace varve::web {
namespace {

constexpr std::uint16_t kPort = 8080;
const std::string kToken(64, 'a');
const std::string kFolder(64, 'b');
const std::string kSession(64, 'c');
const std::string kCookie = "varve-8080=" + kSession;

Gate gate() { return Gate({.token = kToken, .folder = kFolder, .session = kSession}, kPort); }
Gate::Verdict verdict(const Request& request) { return gate().judge(request); }

Request request(const std::string& host, const std::string& cookies = "",
                const std::string& path = "/" + kFolder + "/") {
  Request made;
  made.path = path;
  made.host = host;
  made.cookies = cookies;
  return made;
}

TEST(Gate, CookieAdmitsToTheFolder) {
  EXPECT_EQ(verdict(request("localhost:8080", kCookie)), Gate::Verdict::kAdmitted);
  EXPECT_EQ(verdict(request("[::1]:8080", "a=b; " + kCookie)), Gate::Verdict::kAdmitted);
  EXPECT_EQ(verdict(request("127.0.0.1", "varve-8080=old; " + kCookie + "; c=d",
                            "/" + kFolder + "/api/tree")),
            Gate::Verdict::kAdmitted);
}

TEST(Gate, OtherCookiesDoNot) {
  const std::vector<std::string> wrong = {"",
                                          "varve-8080=",
                                          "varve-8080",
                                          "varve-8080=" + kToken,
                                          "varve-8080=" + kFolder,
                                          "varve-8081=" + kSession,
                                          "xvarve-8080=" + kSession,
                                          "varve-8080=" + kSession.substr(1),
                                          kCookie + "a",
                                          "varve-8080x=" + kSession,
                                          ";;; ; ;=",
                                          std::string(1, '\0')};
  for (const std::string& cookies : wrong) {
    EXPECT_EQ(verdict(request("localhost", cookies)), Gate::Verdict::kRefused) << cookies;
  }
}

// Browsers send cookies to each port of 127.0.0.1, so the server of another port may have it.
TEST(Gate, CookieAloneOpensNothing) {
  for (const std::string& path :
       {std::string("/"), std::string("/api/overview"), std::string(), "/" + kFolder,
        "/" + kFolder.substr(1) + "/", "/" + kSession + "/", "/" + kToken + "/",
        "//" + kFolder + "/", "/x/" + kFolder + "/"}) {
    EXPECT_EQ(verdict(request("localhost", kCookie, path)), Gate::Verdict::kRefused) << path;
  }
  for (const auto& given : {kSession, kFolder, std::string()}) {
    Request exchange = request("localhost", kCookie, "/");
    exchange.query["token"] = given;
    EXPECT_EQ(verdict(exchange), Gate::Verdict::kRefused) << given;
  }
}

TEST(Gate, CookieIsForTheFolderOnly) {
  EXPECT_EQ(gate().cookie(), kCookie + "; Path=/" + kFolder + "/; HttpOnly; SameSite=Strict");
  EXPECT_EQ(gate().home(), "/" + kFolder + "/");
}

TEST(Gate, PathsOfAdmittedRequestsBeginInTheFolder) {
  EXPECT_EQ(gate().inside(request("localhost", kCookie)).path, "/");
  EXPECT_EQ(gate().inside(request("localhost", kCookie, "/" + kFolder + "/api/tree")).path,
            "/api/tree");
  EXPECT_EQ(gate().inside(request("localhost", kCookie, "/" + kFolder + "//x")).path, "//x");
}

TEST(Gate, TokenInTheQueryIsExchanged) {
  Request good = request("localhost:8080", "", "/");
  good.query["token"] = kToken;
  EXPECT_EQ(verdict(good), Gate::Verdict::kExchange);
  good.query["token"] = kToken.substr(1) + "b";
  EXPECT_EQ(verdict(good), Gate::Verdict::kRefused);
  good.path = "/" + kFolder + "/";
  good.cookies = kCookie;
  EXPECT_EQ(verdict(good), Gate::Verdict::kRefused);
}

TEST(Gate, OtherHostsAreForeignEvenWithTheToken) {
  for (const char* host :
       {"", "example.org", "localhost.example.org", "example.org:8080", "127.0.0.2", "::1", "[::1",
        "localhost:", "localhost:80a", "127.0.0.1:1:2", "LOCALHOST "}) {
    Request foreign = request(host, kCookie);
    EXPECT_EQ(verdict(foreign), Gate::Verdict::kForeignHost) << host;
    foreign.query["token"] = kToken;
    EXPECT_EQ(verdict(foreign), Gate::Verdict::kForeignHost) << host;
  }
}

TEST(GateSecrets, AreLongAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 2; ++i) {
    const auto secrets = make_secrets();
    ASSERT_TRUE(secrets);
    for (const auto& secret : {secrets->token, secrets->folder, secrets->session}) {
      EXPECT_EQ(secret.size(), 64);
      EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
      EXPECT_TRUE(seen.insert(secret).second);
    }
  }
}

}  // namespace
}  // namespace varve::web
