// SPDX-License-Identifier: Apache-2.0
// Which versions count for the window: whole versions do, parts of earlier ones do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "catalog/layout_records.h"
#include "history_model.h"

namespace varve::layout {
namespace {

// A partial backup in between does not cost the next full one its deduplication.
TEST(ParentGuard, PartialVersionPushesNothingOut) {
  History history(7);
  Content next = 0;
  const auto full = new_contents(400, next);
  const auto store = [&](const std::vector<Content>& stream) {
    const auto number = history.open();
    history.write(stream);
    history.seal();
    must(history.arrange());
    history.check();
    std::uint64_t born = 0;
    const auto chunks = history.chunk_set(number);
    for (const auto& run : chunks.runs()) {
      if (run.first.birth() == number) born += run.count;
    }
    return born;
  };
  EXPECT_EQ(store(full), 400U);
  auto second = full;
  std::fill_n(second.begin(), 8, next);  // One new chunk in eight places.
  ++next;
  EXPECT_EQ(store(second), 1U);
  EXPECT_FALSE(history.side);
  const std::vector<Content> part(full.begin() + 100, full.begin() + 120);
  EXPECT_EQ(store(part), 0U);
  EXPECT_TRUE(history.side);
  EXPECT_EQ(store({}), 0U);
  EXPECT_TRUE(history.side);
  auto third = second;
  for (std::size_t i = 200; i < 220; ++i) third[i] = next++;
  EXPECT_EQ(store(third), 20U) << "more than the real change was stored";
  EXPECT_FALSE(history.side);
}

TEST(ParentGuard, SecondSmallVersionInARowThatIsAlikeCounts) {
  History history(8);
  Content next = 0;
  const auto store = [&](const std::vector<Content>& stream) {
    history.open();
    history.write(stream);
    history.seal();
    return history.side;
  };
  const auto full = new_contents(300, next);
  EXPECT_FALSE(store(full));
  const std::vector<Content> small(full.begin(), full.begin() + 60);
  EXPECT_TRUE(store(small));
  EXPECT_TRUE(store({full.begin() + 200, full.begin() + 260})) << "small, but not alike";
  EXPECT_FALSE(store({full.begin() + 205, full.begin() + 262})) << "small and alike";
}

TEST(ParentGuard, VersionThatIsWrittenAnewCounts) {
  History history(8);
  Content next = 0;
  for (int version = 0; version < 4; ++version) {
    history.open();
    history.write(new_contents(300, next));  // Nothing is shared with the version before.
    history.seal();
    EXPECT_FALSE(history.side);
    must(history.arrange());
    history.check();
  }
}

// An earlier release judged by shared chunks.
TEST(ParentGuard, WholeVersionsCountAgain) {
  History history(8);
  Content next = 0;
  const auto store = [&](const std::vector<Content>& stream) {
    const auto number = history.open();
    history.write(stream);
    history.seal();
    return number;
  };
  const auto put_side = [&](VersionNumber number, bool side) {
    auto txn = must(meta::WriteTxn::begin(history.catalog()));
    must(catalog::put_retention(txn, kSeries, number, {side, Timestamp{77, 5}}));
    must(txn.commit());
  };
  const auto full = new_contents(300, next);
  store(full);
  const auto other = store(new_contents(300, next));
  const auto part = store({full.begin(), full.begin() + 60});
  put_side(other, true);
  put_side(part, true);
  history.open();
  const auto txn = must(meta::ReadTxn::begin(history.catalog()));
  const auto whole = must(catalog::find_retention(txn, kSeries, other));
  EXPECT_FALSE(whole.side);
  EXPECT_EQ(whole.locked_until.seconds, 77);
  EXPECT_TRUE(must(catalog::find_retention(txn, kSeries, part)).side);
}

}  // namespace
}  // namespace varve::layout
