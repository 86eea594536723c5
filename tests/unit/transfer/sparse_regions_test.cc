// SPDX-License-Identifier: Apache-2.0
#include "transfer/sparse_regions.h"

#include <gtest/gtest.h>

#include <random>

namespace varve::transfer {
namespace {

using Regions = std::vector<ByteRange>;

std::optional<Regions> regions_of(std::uint64_t file_bytes, const Regions& data,
                                  std::size_t regions_max = SparseRegions::kRegionsMax) {
  SparseRegions regions(file_bytes, regions_max);
  for (const ByteRange& range : data) regions.add(range);
  return std::move(regions).take();
}

std::string text(const std::optional<Regions>& regions) {
  if (!regions) return "all";
  std::string out;
  for (const auto& [begin, end] : *regions) {
    out += std::to_string(begin) + "-" + std::to_string(end) + " ";
  }
  return out;
}

TEST(SparseRegions, RoundsOutToBlocksAndJoins) {
  EXPECT_EQ(text(regions_of(10'000, {{1, 2}, {600, 601}, {3000, 4000}})),
            "0-1024 2560-4096 10000-10000 ");
  EXPECT_EQ(text(regions_of(10'000, {{512, 1024}, {1024, 1536}})), "512-1536 10000-10000 ");
}

TEST(SparseRegions, OnlyTheEndOfTheFileMayCutABlock) {
  EXPECT_EQ(text(regions_of(10'000, {{9'990, 9'995}})), "9728-10000 ");
  EXPECT_EQ(text(regions_of(10'000, {{9'000, 10'000}})), "8704-10000 ");
}

TEST(SparseRegions, AFileWithoutAWholeBlockOfHoleIsAllData) {
  EXPECT_EQ(text(regions_of(2'000, {{1, 700}, {701, 1'999}})), "all");
  EXPECT_EQ(text(regions_of(100, {{50, 51}})), "all");
}

TEST(SparseRegions, AHoleAloneIsAnEmptyRegionAtTheEnd) {
  EXPECT_EQ(text(regions_of(777, {})), "777-777 ");
}

TEST(SparseRegions, TooManyAreJoinedOverTheShortestHoles) {
  std::mt19937_64 random(5);
  Regions data;
  std::uint64_t at = 0;
  for (int i = 0; i < 5'000; ++i) {
    at += random() % 20'000;
    const std::uint64_t end = at + 1 + random() % 3'000;
    data.push_back({at, end});
    at = end;
  }
  const auto regions = regions_of(at + 5, data, 100);
  ASSERT_TRUE(regions.has_value());
  EXPECT_LE(regions->size(), 100U);
  std::size_t i = 0;
  for (const ByteRange& range : data) {
    while (i < regions->size() && (*regions)[i].end < range.end) ++i;
    ASSERT_LT(i, regions->size());
    EXPECT_LE((*regions)[i].begin, range.begin);
  }
}

}  // namespace
}  // namespace varve::transfer
