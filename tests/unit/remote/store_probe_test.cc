// SPDX-License-Identifier: Apache-2.0
// When the clients of a probe race. docs/decisions/160.
#include "remote/store_probe.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "world.h"

namespace varve::remote {
namespace {

constexpr std::int64_t kDayS = 86400;

class StoreProbe : public testing::Test {
 protected:
  bucket::ProbeRecord probe(const std::optional<bucket::ProbeRecord>& before) {
    test::MemoryBucket bucket(objects_, "p/", &clock_);
    ProbeRequest request{.before = before};
    request.open_client = [this]() -> Result<std::unique_ptr<bucket::Bucket>> {
      ++clients_;
      return std::unique_ptr<bucket::Bucket>(
          std::make_unique<test::MemoryBucket>(objects_, "p/", &clock_));
    };
    clients_ = 0;
    return test::must(probe_store(bucket, clock_, request));
  }
  const std::shared_ptr<test::MemoryObjects> objects_ = std::make_shared<test::MemoryObjects>();
  test::TestClock clock_;
  std::size_t clients_ = 0;
};

TEST_F(StoreProbe, RepeatsTheRacesAfterThirtyDays) {
  auto record = probe(std::nullopt);
  EXPECT_EQ(clients_, bucket::kRaceClients);
  EXPECT_EQ(record.raced_s, clock_.seconds);
  const auto first = record.raced_s;
  clock_.seconds += 30 * kDayS;
  record = probe(record);
  EXPECT_EQ(clients_, 0U);
  EXPECT_EQ(record.raced_s, first);
  EXPECT_EQ(record.seconds, clock_.seconds);
  clock_.seconds += 1;
  record = probe(record);
  EXPECT_EQ(clients_, bucket::kRaceClients);
  clock_.seconds -= kDayS;  // The clock was ahead.
  record = probe(record);
  EXPECT_EQ(clients_, bucket::kRaceClients);
  EXPECT_EQ(record.raced_s, clock_.seconds);
}

TEST_F(StoreProbe, RepeatsTheRacesOfAStoreThatFailed) {
  objects_->lets_through = "-20";
  auto record = probe(std::nullopt);
  EXPECT_EQ(record.abilities.conditions, bucket::Conditions::kIgnored);
  // One race would not tell.
  objects_->lets_through = "-20";
  record = probe(record);
  EXPECT_EQ(record.abilities.conditions, bucket::Conditions::kIgnored);
  record = probe(record);
  EXPECT_EQ(record.abilities.conditions, bucket::Conditions::kHonoured);
  EXPECT_EQ(clients_, bucket::kRaceClients);
  record = probe(record);
  EXPECT_EQ(clients_, 0U);
}

}  // namespace
}  // namespace varve::remote
