// SPDX-License-Identifier: Apache-2.0
#include "fs/slot_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace varve::fs {
namespace {

SeriesInfo series_of(std::uint32_t id) {
  SeriesInfo series;
  series.id = SeriesId{id};
  series.created_at = {1'700'000'000, id};
  return series;
}

TEST(SlotTable, IndicesAreTheSameInEveryOrder) {
  SlotTable first;
  SlotTable second;
  const auto one = first.version(series_of(1), VersionNumber{7}).index();
  const auto two = first.series(series_of(2)).index();
  EXPECT_EQ(second.series(series_of(2)).index(), two);
  EXPECT_EQ(second.version(series_of(1), VersionNumber{7}).index(), one);
  EXPECT_EQ(SlotTable::place_of(one), (std::pair{SeriesId{1}, VersionNumber{7}}));
  EXPECT_EQ(SlotTable::place_of(two), (std::pair{SeriesId{2}, VersionNumber{}}));
  EXPECT_EQ(first.find(two), first.find(SeriesId{2}, VersionNumber{}));
  EXPECT_EQ(first.find(one + 1), nullptr);
}

TEST(SlotTable, NumbersThatDoNotFitGetAnIndexOfThisMountOnly) {
  SlotTable slots;
  std::set<std::uint32_t> seen;
  for (const std::uint32_t series : {1U, 8191U, 8192U, 0xffffffffU}) {
    for (const std::uint32_t number : {0U, 1U, 65535U, 65536U, 0xffffffffU}) {
      Slot& slot = slots.version(series_of(series), VersionNumber{number});
      EXPECT_TRUE(seen.insert(slot.index()).second);
      EXPECT_EQ(slots.find(slot.index()), &slot);
      EXPECT_LT(slot.index(), (1U << 30) - 1);
      EXPECT_EQ(SlotTable::place_of(slot.index()).has_value(), series < 8192 && number < 65536);
    }
  }
}

TEST(SlotTable, DeletedVersionKeepsNoRanks) {
  SlotTable slots;
  for (const bool is_removed : {false, true}) {
    Slot& slot = slots.version(series_of(1), VersionNumber{is_removed ? 7U : 8U});
    auto ranks = std::make_shared<RankTable>();
    ASSERT_TRUE(ranks->add(5, 3));
    const std::weak_ptr<RankTable> seen = ranks;
    SealOutcome outcome;
    outcome.rank_of = std::move(ranks);
    slot.seal(outcome, nullptr);
    outcome = {};
    EXPECT_EQ(slot.rank_of(5), Rank{3});
    if (is_removed) {
      slot.remove({});
    } else {
      slot.drop();
    }
    EXPECT_TRUE(seen.expired());
    EXPECT_EQ(slot.rank_of(5), std::nullopt);
  }
}

TEST(SlotTable, GenerationsDependOnTheSeriesAlone) {
  SlotTable slots;
  const auto of = [&](std::uint32_t series, std::uint32_t number) {
    return slots.version(series_of(series), VersionNumber{number}).generation();
  };
  EXPECT_EQ(of(1, 1), of(1, 2));
  EXPECT_NE(of(1, 1), of(2, 1));
  EXPECT_NE(of(1, 1), 0U);
}

}  // namespace
}  // namespace varve::fs
