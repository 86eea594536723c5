// SPDX-License-Identifier: Apache-2.0
#include "version/removed_inodes.h"

#include <gtest/gtest.h>

namespace varve::version {
namespace {

TEST(RemovedInodes, HoldsNothingBeforeItIsAskedTo) {
  RemovedInodes removed;
  EXPECT_FALSE(removed.hold(7));
  removed.keep();
  removed.forget(7);
  EXPECT_TRUE(removed.take_forgotten().empty());
}

TEST(RemovedInodes, ForgottenInodeIsReturnedOnce) {
  RemovedInodes removed;
  removed.keep();
  EXPECT_TRUE(removed.hold(7));
  EXPECT_TRUE(removed.take_forgotten().empty());
  removed.forget(7);
  removed.forget(7);
  EXPECT_EQ(removed.take_forgotten(), std::vector<Ino>{7});
  EXPECT_TRUE(removed.take_forgotten().empty());
}

TEST(RemovedInodes, ForgettingAnInodeWithANameHasNoEffect) {
  RemovedInodes removed;
  removed.keep();
  EXPECT_TRUE(removed.hold(7));
  removed.forget(8);
  EXPECT_TRUE(removed.take_forgotten().empty());
}

}  // namespace
}  // namespace varve::version
