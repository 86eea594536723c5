// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <gtest/gtest.h>

namespace varve::base {
namespace {

const std::vector<std::string> kCommands{"mount", "umount", "store", "restore", "stats",
                                         "stat",  "ls",     "rm",    "seal",    "prune"};

TEST(NearestName, FindsMisspelledNames) {
  EXPECT_EQ(nearest_name("muont", kCommands), "mount");
  EXPECT_EQ(nearest_name("unmount", kCommands), "umount");
  EXPECT_EQ(nearest_name("sore", kCommands), "store");
  EXPECT_EQ(nearest_name("STATS", kCommands), "stats");
  EXPECT_EQ(nearest_name("prunes", kCommands), "prune");
  EXPECT_EQ(nearest_name("monday", {"sunday", "Monday"}), "Monday");
}

TEST(NearestName, SuggestsNothingThatIsFar) {
  EXPECT_EQ(nearest_name("xyz", kCommands), std::nullopt);
  EXPECT_EQ(nearest_name("", kCommands), std::nullopt);
  EXPECT_EQ(nearest_name("a", {"b"}), std::nullopt);
  EXPECT_EQ(nearest_name("check", {}), std::nullopt);
  const std::string longer(65, 'x');
  EXPECT_EQ(nearest_name(longer, {longer}), std::nullopt) << "long names are not compared";
}

TEST(NearestName, HintsAtTheEndOfAMessage) {
  EXPECT_EQ(nearest_name_hint("hom", {"home"}), "; did you mean \"home\"?");
  EXPECT_EQ(nearest_name_hint("etc", {"home"}), "");
}

}  // namespace
}  // namespace varve::base
