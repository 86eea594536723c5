// SPDX-License-Identifier: Apache-2.0
#include "bucket/backoff.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "bucket/get_times.h"

namespace varve::bucket {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, WaitsUpToALimitThatDoubles) {
  constexpr std::uint64_t kSeed = 7;
  Backoff backoff(milliseconds(100), milliseconds(20000), kSeed);
  for (unsigned tries = 1; tries <= 100; ++tries) {
    const auto limit = tries > 8 ? milliseconds(20000) : milliseconds(100) * (1U << (tries - 1U));
    std::set<milliseconds> waits;
    for (int i = 0; i < 200; ++i) {
      const auto wait = backoff.wait_after(tries);
      ASSERT_GE(wait.count(), 0);
      ASSERT_LE(wait, limit) << "seed " << kSeed << ", tries " << tries;
      waits.insert(wait);
    }
    EXPECT_LT(*waits.begin(), limit / 4) << "the jitter is not full";
    EXPECT_GT(*waits.rbegin(), limit * 3 / 4);
  }
}

TEST(Backoff, NeverExceedsASmallLimit) {
  Backoff backoff(milliseconds(100), milliseconds(10), 1);
  for (unsigned tries = 1; tries < 50; ++tries) EXPECT_LE(backoff.wait_after(tries).count(), 10);
}

TEST(GetTimes, AreLateAfterThreeMedians) {
  GetTimes times;
  constexpr std::size_t kBytes = 100000;
  for (std::size_t i = 0; i < GetTimes::kSamplesLeast - 1; ++i) times.add(kBytes, milliseconds(10));
  EXPECT_FALSE(times.late_after(kBytes)) << "too few are known";
  times.add(kBytes, milliseconds(10000));
  EXPECT_EQ(times.late_after(kBytes), milliseconds(30));
  EXPECT_FALSE(times.late_after(100 * kBytes)) << "another size";
  for (std::size_t i = 0; i < GetTimes::kSamples; ++i) times.add(kBytes, milliseconds(50));
  EXPECT_EQ(times.late_after(kBytes), milliseconds(150)) << "old times count";
}

TEST(GetTimes, AllowOneSecondGetInTwenty) {
  GetTimes times;
  int seconds = 0;
  for (int i = 1; i <= 200; ++i) {
    times.begin();
    if (times.take_second()) ++seconds;
    EXPECT_LE(seconds * 20, i);
  }
  EXPECT_EQ(seconds, 10);
}

}  // namespace
}  // namespace varve::bucket
