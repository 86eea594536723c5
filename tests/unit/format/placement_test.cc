// SPDX-License-Identifier: Apache-2.0
#include "varve/placement.h"

#include <gtest/gtest.h>

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

TEST(Placement, OnlyLineageIsMade) {
  EXPECT_TRUE(check_placement(Placement::kLineage));
  for (const auto placement :
       {Placement::kLineagePool, Placement::kPool, static_cast<Placement>(9)}) {
    const auto made = check_placement(placement);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace varve
