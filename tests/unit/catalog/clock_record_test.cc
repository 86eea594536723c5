// SPDX-License-Identifier: Apache-2.0
#include "catalog/clock_record.h"

#include <gtest/gtest.h>

namespace varve::catalog {
namespace {

constexpr std::int64_t kDay = 24 * 60 * 60;
constexpr std::int64_t kStart = 1767225600;

VersionRecord sealed(std::uint32_t number, std::int64_t seconds, std::uint32_t nanoseconds = 0) {
  VersionRecord record;
  record.number = static_cast<VersionNumber>(number);
  record.state = VersionState::kSealed;
  record.sealed_at = {seconds, nanoseconds};
  return record;
}

TEST(Clock, TheMarkFollowsAClockThatGoesOn) {
  ClockRecord record{kStart, 0};
  record = observe(record, {kStart + kDay, 0});
  EXPECT_EQ(record.mark_seconds, kStart + kDay);
  record = observe(record, {kStart + kDay, 1});
  EXPECT_EQ(record.mark_seconds, kStart + kDay + 1) << "rounded up";
  record = observe(record, {kStart, 0});
  EXPECT_EQ(record.mark_seconds, kStart + kDay + 1) << "it never falls";
}

TEST(Clock, AJumpThatIsPutRightLeavesNoTrace) {
  const ClockRecord before{kStart, 0};
  auto record = observe(before, {kStart + 4000 * kDay, 0});
  EXPECT_EQ(record.mark_seconds, kStart);
  record = observe(record, {kStart + 4000 * kDay + 3600, 0});
  EXPECT_EQ(record.mark_seconds, kStart) << "an hour proves nothing";
  record = observe(record, {kStart, 0});
  EXPECT_EQ(record, before);
}

TEST(Clock, AMachineThatWasOffIsBelievedAfterADay) {
  ClockRecord record{kStart, 0};
  record = observe(record, {kStart + 60 * kDay, 0});
  EXPECT_EQ(record.mark_seconds, kStart);
  record = observe(record, {kStart + 61 * kDay + 60, 0});
  EXPECT_EQ(record.mark_seconds, kStart + 61 * kDay + 60);
}

TEST(Clock, AClockThatWentBackWhileAheadStartsTheDayAgain) {
  ClockRecord record{kStart, 0};
  record = observe(record, {kStart + 60 * kDay, 0});
  record = observe(record, {kStart + 50 * kDay, 0});
  record = observe(record, {kStart + 50 * kDay + kDay / 2, 0});
  EXPECT_EQ(record.mark_seconds, kStart);
}

TEST(SealTime, IsTheClocksWhereItGoesOn) {
  EXPECT_EQ(seal_time({}, 0, {kStart, 7}), (Timestamp{kStart, 7}));
  EXPECT_EQ(seal_time({sealed(1, kStart)}, kStart, {kStart + 1, 0}), (Timestamp{kStart + 1, 0}));
}

TEST(SealTime, NeverGoesBackWithTheClock) {
  const std::vector<VersionRecord> versions = {sealed(1, kStart, 999'999'999)};
  EXPECT_EQ(seal_time(versions, kStart + 1, {kStart, 999'999'999}), (Timestamp{kStart + 1, 0}));
  EXPECT_EQ(seal_time(versions, kStart + 1, {0, 0}), (Timestamp{kStart + 1, 0}));
  EXPECT_EQ(seal_time({sealed(1, kStart, 5)}, kStart + 1, {kStart, 1}), (Timestamp{kStart, 6}));
}

TEST(SealTime, DoesNotStayInAFutureThatWasPutRight) {
  const std::vector<VersionRecord> versions = {sealed(1, kStart), sealed(2, kStart + 4000 * kDay)};
  EXPECT_EQ(seal_time(versions, kStart, {kStart + 9, 0}), (Timestamp{kStart + 9, 0}));
}

TEST(SealTime, FollowsASmallStepBackOfAClockThatWasBelieved) {
  const std::vector<VersionRecord> versions = {sealed(1, kStart + 3600, 5)};
  EXPECT_EQ(seal_time(versions, kStart + 3601, {kStart, 0}), (Timestamp{kStart + 3600, 6}));
}

}  // namespace
}  // namespace varve::catalog
