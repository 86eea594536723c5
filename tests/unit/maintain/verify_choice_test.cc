// SPDX-License-Identifier: Apache-2.0
#include "maintain/verify_choice.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace varve::maintain {
namespace {

constexpr SeriesId kChosenSeries{3};

format::ContainerRecord container(std::uint32_t number, std::uint32_t segment = 1,
                                  std::uint64_t offset = 0) {
  format::ContainerRecord record;
  record.number = ContainerNumber{number};
  record.segment = SegmentNumber{segment};
  record.offset = offset;
  return record;
}

VerifyLevel level(const CheckOptions& options, const format::ContainerRecord& record) {
  return VerifyChoice(options, 1).job_of(kChosenSeries, record).level;
}

unsigned with_data(const CheckOptions& options, std::uint64_t seed) {
  const VerifyChoice choice(options, seed);
  unsigned count = 0;
  for (std::uint32_t number = 1; number <= 1000; ++number) {
    count += choice.job_of(kChosenSeries, container(number)).level != VerifyLevel::kHeader ? 1 : 0;
  }
  return count;
}

TEST(VerifyChoice, OptionsSetTheLevel) {
  CheckOptions options;
  EXPECT_EQ(level(options, container(1)), VerifyLevel::kFrames);
  options.verify_chunks = true;
  EXPECT_EQ(level(options, container(1)), VerifyLevel::kChunks);
  options.read_data = false;
  EXPECT_EQ(level(options, container(1)), VerifyLevel::kHeader);
}

TEST(VerifyChoice, SkipsDataUpToAPosition) {
  CheckOptions options;
  options.after = CheckPosition{kChosenSeries, 2, 4096};
  EXPECT_EQ(level(options, container(1, 1, 8192)), VerifyLevel::kHeader);
  EXPECT_EQ(level(options, container(1, 2, 4096)), VerifyLevel::kHeader);
  EXPECT_EQ(level(options, container(1, 2, 4097)), VerifyLevel::kFrames);
}

TEST(VerifyChoice, DrawsTheRequestedShare) {
  CheckOptions options;
  EXPECT_EQ(with_data(options, 7), 1000U);
  options.percent = 0;
  EXPECT_EQ(with_data(options, 7), 0U);
  options.percent = 20;
  EXPECT_NEAR(with_data(options, 7), 200, 60);
}

TEST(VerifyChoice, SeedDecidesTheDraw) {
  CheckOptions options;
  options.percent = 50;
  const VerifyChoice first(options, 1);
  const VerifyChoice same(options, 1);
  const VerifyChoice other(options, 2);
  unsigned different = 0;
  for (std::uint32_t number = 1; number <= 100; ++number) {
    const auto record = container(number);
    EXPECT_EQ(first.job_of(kChosenSeries, record).level, same.job_of(kChosenSeries, record).level);
    const bool differs =
        first.job_of(kChosenSeries, record).level != other.job_of(kChosenSeries, record).level;
    different += differs ? 1 : 0;
  }
  EXPECT_GT(different, 20U);
}

}  // namespace
}  // namespace varve::maintain
