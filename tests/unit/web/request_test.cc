// SPDX-License-Identifier: Apache-2.0
#include "web/request.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace varve::web {
namespace {

std::string get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

unsigned status_of(const std::string& text) {
  const ParsedRequest parsed = parse_request(text);
  return parsed.request ? 200 : parsed.status;
}

TEST(Request, HasDecodedPathAndQuery) {
  const auto parsed = parse_request(get("/a%20b?path=x%2Fy%FF&empty=&series=1", "Cookie: a=b\r\n"));
  ASSERT_TRUE(parsed.request);
  EXPECT_EQ(parsed.request->path, "/a b");
  EXPECT_EQ(*parsed.request->find("path"), "x/y\xff");
  EXPECT_EQ(*parsed.request->find("empty"), "");
  EXPECT_EQ(parsed.request->find("missing"), nullptr);
  EXPECT_EQ(parsed.request->host, "localhost");
  EXPECT_EQ(parsed.request->cookies, "a=b");
  EXPECT_FALSE(parsed.request->is_head);
}

TEST(Request, NeedsMoreBytesUntilItIsComplete) {
  const std::string text = get("/", "Range: bytes=1-2\r\n");
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto parsed = parse_request(std::string_view(text).substr(0, bytes));
    ASSERT_FALSE(parsed.request) << bytes;
    ASSERT_EQ(parsed.status, 0) << bytes;
  }
  EXPECT_TRUE(parse_request(text).request);
}

TEST(Request, OtherMethodsBodiesAndVersionsAreRefused) {
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
  EXPECT_EQ(status_of("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
  EXPECT_EQ(status_of(get("/", "Content-Length: 5\r\n")), 413);
  EXPECT_EQ(status_of(get("/", "Transfer-Encoding: chunked\r\n")), 413);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
}

TEST(Request, MalformedOnesAreRefused) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);                        // No Host.
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);  // Two.
  EXPECT_EQ(status_of("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);     // A proxy's.
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nX y: z\r\n\r\n"), 400);
  EXPECT_EQ(status_of("garbage\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string(64, '\0')), 400);
  EXPECT_EQ(status_of(get("/%4")), 400);
  EXPECT_EQ(status_of(get("/?a=%g0")), 400);
  EXPECT_EQ(status_of(get("/?a=1&a=2")), 400);
}

TEST(Request, HeadersAreBounded) {
  EXPECT_EQ(status_of(get("/", "X: " + std::string(kRequestBytesMax, 'x') + "\r\n")), 431);
  EXPECT_EQ(status_of("GET /" + std::string(kRequestBytesMax, 'x')), 431);
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "X: y\r\n";
  EXPECT_EQ(status_of(get("/", many)), 431);
}

TEST(Request, AnyBytesGetAnAnswerOrWait) {
  std::mt19937 random(1);
  const std::string whole = get("/file?series=1&path=a%20b", "Range: bytes=0-5\r\nCookie: a=b\r\n");
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (int flips = 0; flips < 3; ++flips) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto parsed = parse_request(text);
    ASSERT_TRUE(parsed.request || parsed.status == 0 || parsed.status >= 400) << round;
  }
}

TEST(PercentCoding, RoundTripsEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string encoded = percent_encode(all);
  EXPECT_EQ(percent_decode(encoded), all);
  EXPECT_EQ(encoded.find_first_of("\r\n\"; /<>"), std::string::npos);
  EXPECT_EQ(percent_decode("%"), std::nullopt);
  EXPECT_EQ(percent_decode("%4"), std::nullopt);
  EXPECT_EQ(percent_decode("%-1"), std::nullopt);
}

TEST(Range, OneRangeOfBytesIsTaken) {
  const auto range = parse_range("bytes=5-9");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5);
  EXPECT_EQ(range->last, 9);
  EXPECT_EQ(parse_range("bytes=5-")->last, std::nullopt);
  EXPECT_EQ(parse_range("bytes=-5")->first, std::nullopt);
  for (const char* text : {"", "bytes=", "bytes=-", "bytes=9-5", "bytes=1-2,4-5", "lines=1-2",
                           "bytes=x-5", "bytes=1-x", "bytes=99999999999999999999-", "bytes=+1-2"}) {
    EXPECT_FALSE(parse_range(text)) << text;
  }
}

}  // namespace
}  // namespace varve::web
