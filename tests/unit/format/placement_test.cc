// SPDX-License-Identifier: Apache-2.0
#include "varve/placement.h"

#include <gtest/gtest.h>

#include "varve/rewrite.h"

namespace varve {
namespace {

TEST(Placement, EachNameIsParsedBack) {
  for (const auto placement : {Placement::kLineage, Placement::kLineagePool, Placement::kPool}) {
    const auto back = parse_placement(placement_name(placement));
    ASSERT_TRUE(back) << placement_name(placement);
    EXPECT_EQ(*back, placement);
    EXPECT_NE(placement_names().find(placement_name(placement)), std::string::npos);
  }
}

TEST(Placement, UnknownNameIsRefusedWithTheListOfNames) {
  for (const char* name : {"", "Lineage", "lineage ", "forest"}) {
    const auto parsed = parse_placement(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid);
    EXPECT_NE(parsed.error().message().find("lineage, lineage+pool, pool"), std::string::npos);
  }
}

TEST(Placement, UnknownValueIsUnsupported) {
  EXPECT_TRUE(check_placement(Placement::kLineage));
  const auto made = check_placement(static_cast<Placement>(9));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kUnsupported);
}

TEST(Rewrite, EachNameIsParsedBackAndUnknownOnesAreRefused) {
  for (const auto rewrite : {Rewrite::kNone, Rewrite::kHar, Rewrite::kCap, Rewrite::kCbr,
                             Rewrite::kHarCap, Rewrite::kHarCbr}) {
    const auto back = parse_rewrite(rewrite_name(rewrite));
    ASSERT_TRUE(back) << rewrite_name(rewrite);
    EXPECT_EQ(*back, rewrite);
    EXPECT_TRUE(check_rewrite(rewrite));
  }
  for (const char* name : {"", "HAR", "har+", "cap+har"}) {
    const auto parsed = parse_rewrite(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid);
    EXPECT_NE(parsed.error().message().find("none, har, cap, cbr, har+cap, har+cbr"),
              std::string::npos);
  }
  const auto known = check_rewrite(static_cast<Rewrite>(6));
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace varve
