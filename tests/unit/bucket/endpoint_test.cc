// SPDX-License-Identifier: Apache-2.0
#include "bucket/endpoint.h"

#include <gtest/gtest.h>

namespace varve::bucket {
namespace {

TEST(Endpoint, OfAwsHasTheBucketInItsName) {
  const auto endpoint = Endpoint::parse("", "abc");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->scheme(), "https");
  EXPECT_EQ(endpoint->host("eu-west-1"), "abc.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(endpoint->host("cn-north-1"), "abc.s3.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(endpoint->path("x/y"), "/x/y");
  EXPECT_EQ(endpoint->path(""), "/");
}

TEST(Endpoint, OfAwsHasABucketWithDotsInThePath) {
  const auto endpoint = Endpoint::parse("", "a.bc");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->host("eu-west-1"), "s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(endpoint->path("x"), "/a.bc/x");
}

TEST(Endpoint, OfAnotherStoreHasTheBucketInThePath) {
  for (const auto* text :
       {"https://h.example", "http://127.0.0.1:7480/", "https://[::1]:80", "https://h-1:443"}) {
    const auto endpoint = Endpoint::parse(text, "abc");
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(endpoint->path("x"), "/abc/x");
    EXPECT_EQ(endpoint->path(""), "/abc");
  }
  EXPECT_EQ(Endpoint::parse("http://127.0.0.1:7480/", "abc")->host("r"), "127.0.0.1:7480");
  EXPECT_EQ(Endpoint::parse("http://h", "abc")->scheme(), "http");
}

TEST(Endpoint, IsOnlyAHost) {
  for (const auto* text :
       {"h", "h:80", "ftp://h", "https:/h", "https://", "https://h/path", "https://u:p@h",
        "https://h:", "https://h:x", "https://h:123456", "https://h?x", "https://h#x",
        "https://h\r\nx", "https:// h", "https://[::1", "https://a::b", "HTTPS://h"}) {
    const auto endpoint = Endpoint::parse(text, "abc");
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code(), ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace varve::bucket
