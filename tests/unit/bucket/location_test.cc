// SPDX-License-Identifier: Apache-2.0
#include "bucket/location.h"

#include <gtest/gtest.h>

#include <string>

#include "bucket/bucket.h"

namespace varve::bucket {
namespace {

TEST(Location, ATextIsABucketAndAPrefix) {
  EXPECT_EQ(*parse_location("s3://abc"), (Location{"abc", ""}));
  EXPECT_EQ(*parse_location("s3://abc/"), (Location{"abc", ""}));
  EXPECT_EQ(*parse_location("s3://a.b-c/x"), (Location{"a.b-c", "x/"}));
  EXPECT_EQ(*parse_location("s3://abc/x/y z/"), (Location{"abc", "x/y z/"}));
  EXPECT_EQ(*parse_location("s3://abc/%41?#"), (Location{"abc", "%41?#/"})) << "decoded";
}

TEST(Location, OtherTextsAreInvalid) {
  for (const auto* text : {"",
                           "s3:",
                           "s3://",
                           "s3://ab",
                           "s3:///x",
                           "S3://abc",
                           "http://abc/x",
                           "s3://Abc",
                           "s3://a_b",
                           "s3://-abc",
                           "s3://abc-",
                           "s3://a..b",
                           "s3://abc//",
                           "s3://abc//x",
                           "s3://abc/x//y",
                           "s3://abc/x//",
                           "s3://abc/../x",
                           "s3://abc/.",
                           "s3://abc/x\ny",
                           "s3://abc/\xff",
                           "s3://abc:80/x",
                           "s3://u@abc/x"}) {
    const auto parsed = parse_location(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid) << text;
  }
  const auto message = parse_location("s3://abc/x\ty").error().message();
  EXPECT_NE(message.find("without control characters such as a newline or a tab"),
            std::string::npos)
      << message;
  EXPECT_FALSE(parse_location("s3://abc/" + std::string(513, 'x')));
  EXPECT_TRUE(parse_location("s3://abc/" + std::string(512, 'x')));
  EXPECT_FALSE(parse_location("s3://" + std::string(64, 'x')));
}

TEST(Location, ItsTextIsParsedToTheSame) {
  for (const auto* text : {"s3://abc", "s3://abc/x", "s3://abc/x/y"}) {
    EXPECT_EQ(text_of(*parse_location(text)), text);
  }
}

TEST(ObjectName, MeansTheSameToAllStores) {
  for (const auto* name : {"a", "a/b", "seg/0-1", "a b+=:%&?#'\"<>*~", "\xC3\xA9",
                           "\xF0\x9F\x98\x80", "...", "a.", ".a"}) {
    EXPECT_TRUE(is_valid_name(name, 0)) << name;
  }
  for (const auto* name : {"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/..", "a\n", "\x7F",
                           "\xC2\x85", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                           "\xF5\x80\x80\x80", "\xF4\x90\x80\x80", "\x80"}) {
    EXPECT_FALSE(is_valid_name(name, 0)) << name;
  }
  EXPECT_TRUE(is_valid_name(std::string(1024, 'x'), 0));
  EXPECT_FALSE(is_valid_name(std::string(1025, 'x'), 0));
  EXPECT_FALSE(is_valid_name(std::string(1024, 'x'), 1));
  EXPECT_FALSE(is_valid_name("x", 1024));
}

}  // namespace
}  // namespace varve::bucket
