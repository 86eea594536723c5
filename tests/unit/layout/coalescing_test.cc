// SPDX-License-Identifier: Apache-2.0
#include "layout/coalescing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "volume_samples.h"

namespace varve::layout {
namespace {

using catalog::SegmentRecord;

constexpr CoalescingLimits kLimits{1U << 20, 4U << 20, 8};
constexpr std::uint32_t kWindow = 2;

std::vector<SegmentRecord> volumes_of_each(std::uint32_t count, std::uint64_t bytes) {
  std::vector<SegmentRecord> volumes;
  for (std::uint32_t i = 1; i <= count; ++i) volumes.push_back(volume(i, i, bytes));
  return volumes;
}

TEST(Coalescing, EightVolumesOfOneSizeBecomeOneOfTheHighestDeath) {
  auto volumes = volumes_of_each(7, 5000);
  EXPECT_FALSE(next_coalescing(volumes, versions_up_to(20), kWindow, kLimits));
  volumes.push_back(volume(8, 8, 50000));
  EXPECT_FALSE(next_coalescing(volumes, versions_up_to(20), kWindow, kLimits));
  volumes.push_back(volume(9, 9, 5000));
  const auto job = next_coalescing(volumes, versions_up_to(20), kWindow, kLimits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->volumes.size(), 8U);
  EXPECT_EQ(job->death, static_cast<VersionNumber>(9));
}

TEST(Coalescing, VolumesOfTheWindowAreCoalescedOnlyIfOneVersionNeedsThemAll) {
  const auto volumes = volumes_of_each(8, 5000);
  EXPECT_FALSE(next_coalescing(volumes, versions_up_to(9), kWindow, kLimits));
  EXPECT_TRUE(next_coalescing(volumes, versions_up_to(10), kWindow, kLimits));
  const std::vector<LiveVersion> two{{static_cast<VersionNumber>(1), true, false},
                                     {static_cast<VersionNumber>(20), true, false}};
  EXPECT_TRUE(next_coalescing(volumes, two, kWindow, kLimits));
}

TEST(Coalescing, VolumesOfWhichEightAreTooLargeStay) {
  EXPECT_TRUE(next_coalescing(volumes_of_each(20, kLimits.stored_bytes_max / 8), versions_up_to(30),
                              kWindow, kLimits));
  EXPECT_FALSE(next_coalescing(volumes_of_each(20, kLimits.stored_bytes_max / 8 + 1),
                               versions_up_to(30), kWindow, kLimits));
}

TEST(Coalescing, LargeVolumesStay) {
  auto volumes = volumes_of_each(20, kLimits.stored_bytes_max + 1);
  for (auto& one : volumes) one.live_bytes = 1;
  EXPECT_FALSE(next_coalescing(volumes, versions_up_to(30), kWindow, kLimits));
}

TEST(Coalescing, VolumeOfWhichMoreThanHalfIsDeadIsWrittenAlone) {
  auto one = volume(1, 1, kLimits.stored_bytes_max);
  one.live_bytes = one.raw_bytes / 2;
  EXPECT_FALSE(next_coalescing({one}, versions_up_to(9), kWindow, kLimits));
  --one.live_bytes;
  EXPECT_TRUE(next_coalescing({one}, versions_up_to(9), kWindow, kLimits));
}

TEST(Coalescing, JobsKeepTheirLimits) {
  auto volumes = volumes_of_each(12, 125000);
  const auto stored = next_coalescing(volumes, versions_up_to(30), kWindow, kLimits);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->volumes.size(), 8U);
  volumes = volumes_of_each(12, 30000);
  for (auto& one : volumes) one.raw_bytes = one.live_bytes = 500000;
  const auto raw = next_coalescing(volumes, versions_up_to(30), kWindow, kLimits);
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->volumes.size(), 8U);
}

// Volumes of random sizes: there is always an end, few volumes stay, and a byte is copied a few
// times.
TEST(Coalescing, EachByteIsCopiedAFewTimes) {
  std::mt19937_64 random(5);
  std::vector<SegmentRecord> volumes;
  std::uint64_t stored = 0;
  std::uint64_t copied = 0;
  std::uint32_t number = 0;
  constexpr std::uint32_t kCount = 3000;
  for (std::uint32_t death = 1; death <= kCount; ++death) {
    const std::uint64_t bytes = 200 + (random() % 40000 >> random() % 8);
    stored += bytes;
    volumes.push_back(volume(++number, death, bytes));
    while (const auto job = next_coalescing(volumes, versions_up_to(death + 5), kWindow, kLimits)) {
      std::uint64_t sum = 0;
      std::erase_if(volumes, [&](const auto& one) {
        if (std::ranges::count(job->volumes, one.segment) == 0) return false;
        sum += one.bytes;
        return true;
      });
      ASSERT_LE(sum, kLimits.stored_bytes_max);
      copied += sum;
      volumes.push_back(volume(++number, static_cast<std::uint32_t>(job->death), sum));
    }
  }
  EXPECT_LE(volumes.size(), kCount / 20);
  EXPECT_LE(copied, 5 * stored);
}

}  // namespace
}  // namespace varve::layout
