// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace varve::cli {
namespace {

constexpr std::uint64_t kDay = 86400;

TEST(Duration, EachUnitAndSumsAreUnderstood) {
  EXPECT_EQ(parse_duration("12h").value(), 12U * 3600);
  EXPECT_EQ(parse_duration("30d").value(), 30 * kDay);
  EXPECT_EQ(parse_duration("2w").value(), 14 * kDay);
  EXPECT_EQ(parse_duration("6m").value(), 6 * 31 * kDay);
  EXPECT_EQ(parse_duration("1y").value(), 366 * kDay);
  EXPECT_EQ(parse_duration("1y6m2w3d4h").value(), (366 + 6 * 31 + 14 + 3) * kDay + 4 * 3600);
  EXPECT_EQ(parse_duration("0d").value(), 0U);
}

TEST(Duration, AnythingElseIsInvalid) {
  for (const char* text : {"", "d", "12", "12x", "-1d", "1.5d", "1d ", " 1d", "1d2", "1D",
                           "99999999999999999999d", "18446744073709551615y", "10000y10000y"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kUsage) << text;
  }
}

TEST(LockWaitTime, IsZeroOrASumOfUnits) {
  EXPECT_EQ(parse_wait("0").value().count(), 0);
  EXPECT_EQ(parse_wait("90s").value().count(), 90);
  EXPECT_EQ(parse_wait("10min").value().count(), 600);
  EXPECT_EQ(parse_wait("1h30min").value().count(), 5400);
  EXPECT_EQ(parse_wait("1d").value().count(), 86400);
  for (const char* text : {"", "10", "10m", "-1s", "s", "1.5h", "99999d", "1 h", "00", "1w"}) {
    const auto wait = parse_wait(text);
    ASSERT_FALSE(wait) << text;
    EXPECT_EQ(wait.error().code(), ErrorCode::kUsage) << text;
  }
}

/// Local times are those of a zone with summer time.
class PointInTime : public testing::Test {
 protected:
  PointInTime() {
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
  }
};

TEST_F(PointInTime, IsLocalUnlessMarkedAsUtc) {
  EXPECT_EQ(parse_time("2027-01-01").value(), (Timestamp{1798758000, 0}));
  EXPECT_EQ(parse_time("2027-01-01Z").value(), (Timestamp{1798761600, 0}));
  EXPECT_EQ(parse_time("2027-07-01T12:30").value(), (Timestamp{1814437800, 0}));
  EXPECT_EQ(parse_time("2027-07-01T12:30:15Z").value(), (Timestamp{1814445015, 0}));
  EXPECT_EQ(parse_time("2028-02-29Z").value(), (Timestamp{1835395200, 0}));
}

TEST_F(PointInTime, WhatNoCalendarHasIsInvalid) {
  for (const char* text :
       {"", "2027", "2027-1-1", "27-01-01", "2027-13-01", "2027-00-01", "2027-02-29", "2027-04-31",
        "2027-01-01T", "2027-01-01T24:00", "2027-01-01T12:60", "2027-01-01T12", "2027-01-01 12:00",
        "2027-01-01T12:00:60", "2027-01-01T12:00:00.5", "2027-01-01ZZ", "tomorrow"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

TEST(ByteCount, TakesPowersOf1024) {
  EXPECT_EQ(parse_bytes("0").value(), 0U);
  EXPECT_EQ(parse_bytes("1000").value(), 1000U);
  EXPECT_EQ(parse_bytes("50M").value(), 50ULL << 20);
  EXPECT_EQ(parse_bytes("3T").value(), 3ULL << 40);
  for (const char* text : {"", "M", "1X", "1MB", "-1", "99999999999T"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

}  // namespace
}  // namespace varve::cli
