// SPDX-License-Identifier: Apache-2.0
#include "bucket/abilities.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/memory_bucket.h"

namespace varve::bucket {
namespace {

class ProbedAbilities : public testing::Test {
 protected:
  Abilities probe() {
    test::MemoryBucket bucket(objects_, "p/");
    const auto abilities = probe_abilities(bucket, "");
    EXPECT_TRUE(abilities) << abilities.error().message();
    EXPECT_TRUE(objects_->objects.empty());
    return abilities ? *abilities : Abilities{};
  }
  std::shared_ptr<test::MemoryObjects> objects_ = std::make_shared<test::MemoryObjects>();
};

TEST_F(ProbedAbilities, OfAGoodStoreAreAll) {
  EXPECT_EQ(probe(), (Abilities{.conditions = Conditions::kHonoured,
                                .copies_ranges = true,
                                .lists_at_once = true,
                                .removes = true}));
}

TEST_F(ProbedAbilities, TellAnIgnoredCondition) {
  objects_->ignores_conditions = true;
  EXPECT_EQ(probe().conditions, Conditions::kIgnored);
}

TEST_F(ProbedAbilities, TellThatRangesAreNotCopied) {
  objects_->copies_ranges = false;
  EXPECT_FALSE(probe().copies_ranges);
}

TEST_F(ProbedAbilities, TellAListThatIsLate) {
  objects_->list_lag = 1;
  EXPECT_FALSE(probe().lists_at_once);
}

TEST_F(ProbedAbilities, AreUnknownWhileTheStoreDoesNotAnswer) {
  // The probe takes about 20 requests. Each of them fails once.
  std::uint64_t failed = 0;
  for (std::uint64_t request = 0; request < 12; ++request) {
    test::MemoryBucket bucket(objects_, "p/");
    bucket.fail_at(request, test::Fault::kBefore);
    const auto abilities = probe_abilities(bucket, "");
    if (!abilities && abilities.error().code() == ErrorCode::kUnavailable) ++failed;
  }
  EXPECT_EQ(failed, 12);
}

}  // namespace
}  // namespace varve::bucket
