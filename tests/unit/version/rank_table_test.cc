// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "varve/mount.h"

namespace varve {
namespace {

using Ranks = std::map<Ino, std::uint32_t>;

Ranks all_of(const RankTable& table) {
  Ranks ranks;
  table.for_each([&](Ino ino, std::uint32_t rank) {
    EXPECT_TRUE(ranks.emplace(ino, rank).second) << "inode " << ino << " was visited twice";
  });
  return ranks;
}

void expect_equal(RankTable& table, const Ranks& ranks, Ino end) {
  auto next = ranks.begin();
  for (Ino ino = 0; ino <= end; ++ino) {
    const auto found = table.find(ino);
    const bool is_present = next != ranks.end() && next->first == ino;
    ASSERT_EQ(found.has_value(), is_present) << "inode " << ino;
    if (!is_present) continue;
    ASSERT_EQ(*found, next->second) << "inode " << ino;
    ++next;
  }
  EXPECT_EQ(all_of(table), ranks);
}

TEST(RankTable, CompactTableHasTheSameRanks) {
  constexpr std::uint64_t kRounds = 200;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    RankTable table;
    Ranks ranks;
    std::uint32_t rank = 0;
    Ino ino = 1 + random() % 100;
    while (ino < 3000) {
      const std::uint64_t kind = random() % 4;
      const std::uint64_t count = 1 + random() % 80;
      if (kind == 0) table.add_range(ino, count, rank);
      for (std::uint64_t i = 0; i < count; ++i) {
        // Ascending ranks, or ranks in no order.
        const auto own = static_cast<std::uint32_t>(rank + (kind < 2 ? i : count - 1 - i));
        if (kind != 0) {
          ASSERT_TRUE(table.add(ino + i, own));
        }
        ranks[ino + i] = own;
      }
      ino += count;
      rank += static_cast<std::uint32_t>(count);
      if (random() % 2 == 0) ino += random() % 70;
      if (random() % 4 == 0) ++rank;
    }
    expect_equal(table, ranks, ino + 70);
    table.compact();
    expect_equal(table, ranks, ino + 70);
    for (const auto& [present, own] : ranks) ASSERT_FALSE(table.add(present, own));
  }
}

TEST(RankTable, FarInodesHaveRanks) {
  RankTable table;
  ASSERT_TRUE(table.add(UINT64_MAX, 7));
  ASSERT_TRUE(table.add(0, 8));
  table.compact();
  EXPECT_EQ(table.find(UINT64_MAX), 7U);
  EXPECT_EQ(table.find(0), 8U);
  EXPECT_EQ(table.find(UINT64_MAX - 1), std::nullopt);
}

}  // namespace
}  // namespace varve
