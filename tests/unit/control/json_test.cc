// SPDX-License-Identifier: Apache-2.0
#include "control/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace varve::control {
namespace {

TEST(Json, ObjectIsWrittenInTheOrderOfItsNames) {
  Json object{{"text", "a\"b"}, {"flag", true}, {"count", 7U}, {"below", -7}, {"ratio", 1.5}};
  object["list"] = Json::array();
  object["list"].push_back("one");
  object["none"] = Json();
  EXPECT_EQ(object.dump(),
            R"({"below":-7,"count":7,"flag":true,"list":["one"],"none":null,"ratio":1.5,)"
            R"("text":"a\"b"})");
}

TEST(Json, TwoTextsInBracesAreStillAMember) {
  const Json object{{"state", "sealed"}, {"name", "monday"}};
  EXPECT_EQ(object.dump(), R"({"name":"monday","state":"sealed"})");
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\""); }

TEST(Json, ParsedTextReturnsTheSameText) {
  const std::string text =
      R"({"a":[1,-2,"x",{"b":[]}],"c":{"d":null,"e":true},"f":18446744073709551615})";
  EXPECT_EQ(Json::parse(text).dump(), text);
}

TEST(Json, TextThatIsNotJsonGivesNull) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":}", "nul", "{} {}"}) {
    const Json value = Json::parse(text);
    EXPECT_FALSE(value.is_object()) << text;
    EXPECT_EQ(value.dump(), "null") << text;
  }
}

TEST(Json, DeepTextGivesNull) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NE(Json::parse(nested(64)).elements(), nullptr);
  EXPECT_EQ(Json::parse(nested(65)).elements(), nullptr);
  EXPECT_EQ(Json::parse(nested(1000000)).elements(), nullptr);
}

TEST(Json, ValuesOfAnotherTypeOrRangeAreNotReturned) {
  const Json most(std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(most.integer());
  EXPECT_EQ(most.count(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(Json(-1).count());
  EXPECT_EQ(Json(-1).integer(), -1);
  EXPECT_FALSE(Json(1).flag());
  EXPECT_EQ(Json("x").find("x"), nullptr);
  EXPECT_EQ(Json(true).text(), nullptr);
}

TEST(Json, CopyIsIndependent) {
  Json one{{"a", 1}};
  const Json two = one;
  one["a"] = 2;
  EXPECT_EQ(two.dump(), R"({"a":1})");
}

}  // namespace
}  // namespace varve::control
