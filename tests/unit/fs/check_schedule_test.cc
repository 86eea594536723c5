// SPDX-License-Identifier: Apache-2.0
#include "fs/check_schedule.h"

#include <gtest/gtest.h>

namespace varve::fs {
namespace {

using Next = CheckSchedule::Next;

/// A leader that has answered one more request at each check.
std::uint64_t next_idle_turn(std::uint64_t turn) { return turn + 2; }

TEST(CheckSchedule, ChecksBecomeRarerAfterFiftyWithoutALateRequest) {
  CheckSchedule schedule;
  std::uint64_t turn = 0;
  for (int check = 1; check < 50; ++check) {
    turn = next_idle_turn(turn);
    EXPECT_EQ(schedule.note(turn), Next::kSoon) << check;
  }
  for (int check = 50; check < 200; ++check) {
    turn = next_idle_turn(turn);
    EXPECT_EQ(schedule.note(turn), Next::kSeldom) << check;
  }
}

TEST(CheckSchedule, LateRequestMakesChecksFrequentAgain) {
  CheckSchedule schedule;
  std::uint64_t turn = 0;
  for (int check = 0; check < 60; ++check) schedule.note(turn = next_idle_turn(turn));
  const std::uint64_t busy = turn + 1;
  EXPECT_EQ(schedule.note(busy), Next::kSoon);
  EXPECT_FALSE(schedule.request_is_late());
  EXPECT_EQ(schedule.note(busy), Next::kSoon);
  EXPECT_TRUE(schedule.request_is_late());
  EXPECT_EQ(schedule.note(busy + 1), Next::kSoon);
  EXPECT_FALSE(schedule.request_is_late());
}

TEST(CheckSchedule, RequestIsVeryLateAfterTwentyChecks) {
  CheckSchedule schedule;
  schedule.note(1);
  for (int check = 1; check < 20; ++check) {
    schedule.note(1);
    EXPECT_TRUE(schedule.request_is_late());
    EXPECT_FALSE(schedule.request_is_very_late()) << check;
  }
  schedule.note(1);
  EXPECT_TRUE(schedule.request_is_very_late());
}

TEST(CheckSchedule, TenChecksWithoutARequestAreTheLast) {
  CheckSchedule schedule;
  schedule.note(2);
  for (int check = 1; check < 10; ++check) EXPECT_EQ(schedule.note(2), Next::kSoon) << check;
  EXPECT_EQ(schedule.note(2), Next::kWhenWoken);
  EXPECT_EQ(schedule.note(4), Next::kSoon);
}

}  // namespace
}  // namespace varve::fs
