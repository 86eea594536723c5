// SPDX-License-Identifier: Apache-2.0
#include "bucket/abilities.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
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
                                .removes = true,
                                .lists_etags = true}));
}

TEST_F(ProbedAbilities, TellAStoreWithoutEtags) {
  objects_->gives_etags = false;
  EXPECT_EQ(probe().lists_etags, false);
}

TEST_F(ProbedAbilities, TellAnIgnoredCondition) {
  objects_->ignores_conditions = true;
  EXPECT_EQ(probe().conditions, Conditions::kIgnored);
}

// A store that first looks for the object and then writes it lets several clients win now and then.
TEST_F(ProbedAbilities, TellAConditionThatIsNotAtomicByManyRaces) {
  constexpr const char* kObject = "-20";  // Only the race for this object has two winners.
  objects_->lets_through = kObject;
  std::vector<std::unique_ptr<test::MemoryBucket>> clients;
  Races races{.clients = {}, .races = kRaces};
  for (std::size_t i = 0; i < kRaceClients; ++i) {
    clients.push_back(std::make_unique<test::MemoryBucket>(objects_, "p/"));
    races.clients.push_back(clients.back().get());
  }
  test::MemoryBucket bucket(objects_, "p/");
  const auto abilities = probe_abilities(bucket, "", races);
  ASSERT_TRUE(abilities) << abilities.error().message();
  EXPECT_EQ(abilities->conditions, Conditions::kIgnored);
  EXPECT_TRUE(objects_->objects.empty());
  const auto again = probe_abilities(bucket, "", races);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->conditions, Conditions::kHonoured);
  objects_->lets_through = kObject;
  EXPECT_EQ(probe().conditions, Conditions::kHonoured) << "one race does not tell";
}

TEST_F(ProbedAbilities, TellThatRangesAreNotCopied) {
  objects_->copies_ranges = false;
  EXPECT_FALSE(probe().copies_ranges);
}

TEST_F(ProbedAbilities, TellAListThatIsLate) {
  objects_->list_lag = 1;
  EXPECT_FALSE(probe().lists_at_once);
}

TEST_F(ProbedAbilities, TellWhetherObjectsAreLocked) {
  test::MemoryBucket bucket(objects_, "p/");
  const auto now = base::SystemClock().now().seconds;
  const auto reason = try_lock(bucket, "", LockMode::kCompliance, now);
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("no Object Lock"), std::string::npos);
  objects_->has_locks = true;
  const auto works = try_lock(bucket, "", LockMode::kCompliance, now);
  ASSERT_TRUE(works);
  EXPECT_EQ(*works, "");
  bucket.fail_at(bucket.requests() + 2, test::Fault::kBefore);
  EXPECT_FALSE(try_lock(bucket, "", LockMode::kCompliance, now));
}

TEST_F(ProbedAbilities, AreRecordedAndCompared) {
  ProbeRecord record;
  record.abilities = {.conditions = Conditions::kIgnored, .removes = true, .locks = false};
  record.seconds = 1'800'000'000;
  record.clock_ahead_s = -12;
  EXPECT_EQ(decode_probe(encode_probe(record)), record);
  record.raced_s = 1'799'999'999;
  EXPECT_EQ(decode_probe(encode_probe(record)), record);
  record.abilities.locks.reset();
  record.abilities.lists_etags = true;
  EXPECT_EQ(decode_probe(encode_probe(record) + "later = 1\n"), record);
  for (const auto* const text : {"", "probed", "probed = 1\n", "probed = x\nclock-ahead = 1\n"}) {
    EXPECT_FALSE(decode_probe(text)) << text;
  }
  auto now = record.abilities;
  EXPECT_TRUE(differences(record.abilities, now).empty());
  now.conditions = Conditions::kHonoured;
  now.locks = true;  // Was not tried before.
  ASSERT_EQ(differences(record.abilities, now).size(), 1U);
  EXPECT_EQ(differences(record.abilities, now).front(),
            "conditional requests: honoured now, ignored before");
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
