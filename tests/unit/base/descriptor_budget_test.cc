// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_budget.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace varve::base {
namespace {

TEST(DescriptorBudget, UsedUpBudgetReturnsEmfile) {
  DescriptorBudget budget(2);
  std::vector<DescriptorBudget::Share> shares;
  for (int i = 0; i < 2; ++i) {
    auto share = budget.take("cannot work");
    ASSERT_TRUE(share);
    shares.push_back(*std::move(share));
  }
  const auto refused = budget.take("cannot work");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().errno_value(), EMFILE);
  EXPECT_EQ(refused.error().message().find("cannot work: "), 0U);
  EXPECT_NE(refused.error().message().find("ulimit -n"), std::string::npos);
  shares.pop_back();
  EXPECT_TRUE(budget.take("cannot work"));
}

TEST(DescriptorBudget, AMovedShareCountsOnce) {
  DescriptorBudget budget(1);
  std::optional<DescriptorBudget::Share> kept;
  kept.emplace(*budget.take("cannot work"));
  EXPECT_FALSE(budget.take("cannot work"));
  kept.reset();
  EXPECT_TRUE(budget.take("cannot work"));
}

TEST(DescriptorBudget, AShareMayOutliveTheBudget) {
  std::optional<DescriptorBudget::Share> kept;
  {
    DescriptorBudget budget(1);
    kept.emplace(*budget.take("cannot work"));
  }
  kept.reset();
}

TEST(DescriptorBudget, LeavesHalfOfASmallLimitAndLittleOfALargeOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto budget_for = [&](rlim_t files) {
    const rlimit limit{files, before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    return DescriptorBudget::of_process();
  };
  EXPECT_EQ(budget_for(48), 24U);
  EXPECT_EQ(budget_for(1024), 512U);
  if (before.rlim_max >= 20000) {
    EXPECT_EQ(budget_for(20000), 18464U);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace varve::base
