// SPDX-License-Identifier: Apache-2.0
#include "catalog/clock_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

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

TEST(Clock, AConfirmationAcceptsTheFirstReadingOnly) {
  ClockRecord record{kStart, 0};
  record = observe(record, {kStart + 7 * kDay, 0});
  record = observe(record, {kStart + 36500 * kDay, 0});
  EXPECT_EQ(record, (ClockRecord{kStart + 7 * kDay, kStart + 36500 * kDay}));
  record = observe(record, {kStart + 14 * kDay, 0});
  EXPECT_EQ(record, (ClockRecord{kStart + 7 * kDay, kStart + 14 * kDay}));
}

TEST(Clock, ForgedRecordsDoNotOverflow) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  for (const auto mark : {kMin, std::int64_t{0}, kMax}) {
    for (const auto ahead : {kMin, std::int64_t{0}, kMax}) {
      for (const auto now : {kMin, std::int64_t{0}, kMax}) {
        EXPECT_GE(observe({mark, ahead}, {now, 0}).mark_seconds, mark);
        EXPECT_LE(accepted_time({mark, ahead}, {ahead, 0}, {now, 0}), (Timestamp{now, 0}));
      }
    }
  }
}

// ---- Backups in a rhythm, with one jump of the clock. ----

struct Rhythm {
  const char* name;
  std::vector<std::int64_t> intervals;  // Seconds between seals, repeated.
};

const Rhythm kRhythms[] = {
    {"hourly", {3600}},
    {"daily", {kDay}},
    {"daily with delays", {kDay + 40, kDay - 30, kDay + 3600, kDay - 3600, kDay + 1}},
    {"twice a day", {kDay / 2}},
    {"working days", {kDay, kDay, kDay, kDay, 3 * kDay}},
    {"weekends off, with delays", {kDay + 90, kDay - 60, kDay + 7, kDay - 30, 3 * kDay}},
    {"every other day", {2 * kDay}},
    {"weekly", {7 * kDay}},
    {"monthly", {31 * kDay, 28 * kDay, 31 * kDay, 30 * kDay}},
    {"gaps", {kDay, 40 * kDay, kDay, kDay, 100 * kDay, 3600, 7 * kDay, 26 * 3600 + 1}},
};

// Simulates 40 seals. The clock is wrong by `jump` from shortly before seal `wrong_from` to shortly
// after seal `wrong_to`. Checks the accepted time at each seal and shortly after.
void check_rhythm(const Rhythm& rhythm, std::int64_t jump, int wrong_from, int wrong_to) {
  SCOPED_TRACE(std::string(rhythm.name) + ", a jump of " + std::to_string(jump) + " s at seal " +
               std::to_string(wrong_from));
  constexpr int kSeals = 40;
  ClockRecord record{kStart, 0};
  Timestamp newest_seal{kStart, 0};
  std::vector<std::int64_t> times = {kStart};
  for (int seal = 1; seal <= kSeals; ++seal) {
    const auto interval =
        rhythm.intervals[static_cast<std::size_t>(seal) % rhythm.intervals.size()];
    times.push_back(times.back() + interval);
    const bool is_wrong = seal >= wrong_from && seal <= wrong_to;
    const Timestamp now{times.back() + (is_wrong ? jump : 0), 0};
    record = observe(record, now);
    newest_seal = std::max(newest_seal, now);
    const auto accepted = accepted_time(record, newest_seal, now).seconds;
    EXPECT_LE(accepted, times.back() + kClockJumpSeconds) << "a lock ended early at seal " << seal;
    if (seal < wrong_from || seal > wrong_to + 2) {
      auto confirmed = times.end() - 1;
      while (confirmed != times.begin() && times.back() - *confirmed <= kClockConfirmSeconds) {
        --confirmed;
      }
      // Of several seals within kClockConfirmSeconds, the first one counts.
      EXPECT_GE(accepted, *confirmed - kClockConfirmSeconds)
          << "more than an interval late at " << seal;
      EXPECT_LE(accepted, times.back());
    }
  }
}

TEST(Clock, OneJumpEndsNoLockAndLocksEndAnIntervalLate) {
  for (const auto& rhythm : kRhythms) {
    check_rhythm(rhythm, 0, 100, 100);
    for (const std::int64_t jump : {2 * kDay, 30 * kDay, 36500 * kDay, -3 * kDay, -7300 * kDay}) {
      for (int seal = 2; seal <= 12; ++seal) check_rhythm(rhythm, jump, seal, seal);
    }
  }
}

TEST(Clock, AJumpOfSomeHoursWithSeveralSealsEndsNoLock) {
  for (const std::int64_t jump : {2 * kDay, 36500 * kDay}) {
    for (int seal = 2; seal <= 12; ++seal) check_rhythm(kRhythms[0], jump, seal, seal + 20);
  }
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
