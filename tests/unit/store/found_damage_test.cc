// SPDX-License-Identifier: Apache-2.0
#include "store/found_damage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"

namespace varve::store {
namespace {

constexpr StoreId kDamaged{1};

base::IdRuns run(std::uint32_t first, std::uint32_t count) {
  return base::IdRuns::from({{ChunkId::make(VersionNumber{3}, first), count}});
}

TEST(FoundDamage, IsTakenOnce) {
  FoundDamage damage;
  EXPECT_TRUE(damage.take().empty());
  damage.note(kDamaged, run(0, 2));
  damage.note(kDamaged, run(2, 1));
  damage.note(kPoolStore, run(7, 1));
  damage.note(kPoolStore, {});
  const auto taken = damage.take();
  EXPECT_EQ(taken.at(kDamaged), run(0, 3));
  EXPECT_EQ(taken.at(kPoolStore), run(7, 1));
  EXPECT_TRUE(damage.take().empty());
}

TEST(FoundDamage, CallsForTheFirstChunksAndWhenTheirNumberHasDoubled) {
  FoundDamage damage;
  std::vector<std::uint32_t> calls;
  std::uint32_t noted = 0;
  damage.watch([&] {
    calls.push_back(noted);
    static_cast<void>(damage.take());
  });
  for (noted = 1; noted <= 100; ++noted) damage.note(kDamaged, run(2 * noted, 1));
  EXPECT_EQ(calls, (std::vector<std::uint32_t>{1, 2, 4, 8, 16, 32, 64}));
}

TEST(FoundDamage, KnowsTheContainersUntilTaken) {
  FoundDamage damage;
  EXPECT_TRUE(damage.is_new(kDamaged, ContainerNumber{5}));
  EXPECT_FALSE(damage.is_new(kDamaged, ContainerNumber{5}));
  EXPECT_TRUE(damage.is_new(kPoolStore, ContainerNumber{5}));
  static_cast<void>(damage.take());
  EXPECT_TRUE(damage.is_new(kDamaged, ContainerNumber{5}));
}

TEST(FoundDamage, IsBounded) {
  FoundDamage damage;
  for (std::uint32_t i = 0; i < FoundDamage::kRunsMax + 10; ++i)
    damage.note(kDamaged, run(2 * i, 1));
  EXPECT_EQ(damage.take().at(kDamaged).size(), FoundDamage::kRunsMax);
}

}  // namespace
}  // namespace varve::store
