// SPDX-License-Identifier: Apache-2.0
#include "index/zero_bin.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "support/index_samples.h"
#include "support/pool_containers.h"
#include "support/temp_repository.h"

namespace varve::index {
namespace {

using test::must;

Entry entry(std::uint64_t content, std::uint32_t ordinal) {
  return {tag_of(random_fingerprint(content)), pool_id(1, ordinal)};
}

TEST(ZeroBinTest, AgreesWithAMap) {
  for (const bool drops_nothing : {true, false}) {
    std::mt19937_64 random(5);
    BinRules rules;
    rules.entries_kept = drops_nothing ? 100'000 : 40;
    rules.heat_step = 15;
    ZeroBin bin(rules);
    std::map<std::uint64_t, ChunkId> known;
    std::size_t missed = 0;
    for (std::uint32_t i = 0; i < 30'000; ++i) {
      const std::uint64_t content = random() % 700;
      const Entry one = entry(content, i);
      const auto found = bin.find(one.tag);
      if (!found && known.contains(content)) ++missed;
      if (found) {
        ASSERT_EQ(*found, known.at(content));
      }
      const auto action = random() % 4;
      if (action == 0) {
        bin.erase(one.tag);
        known.erase(content);
      } else if (action == 1 && found) {
        bin.use(one.tag);
      } else {
        bin.put(one);
        known[content] = one.id();
      }
      if (i % 1000 == 0) {
        std::string bytes;
        bin.encode(bytes);
        auto again = must(ZeroBin::decode(bytes, rules));
        ASSERT_EQ(again.size(), bin.size());
        bin = std::move(again);
      }
    }
    EXPECT_EQ(missed == 0, drops_nothing);
  }
}

TEST(ZeroBinTest, ReusesTheSlotsOfEntriesThatAreNotUsed) {
  BinRules rules;
  rules.heat_step = 255;
  rules.entries_kept = 500;
  ZeroBin bin(rules);
  for (std::uint32_t round = 0; round < 50; ++round) {
    for (std::uint32_t i = 0; i < 200; ++i) bin.put(entry(i, i));
    for (std::uint32_t i = 0; i < 100; ++i) bin.put(entry(1000 + round * 100 + i, 1000 + i));
  }
  EXPECT_LE(bin.size(), 1000U);
  for (std::uint32_t i = 0; i < 200; ++i) EXPECT_TRUE(bin.find(entry(i, i).tag)) << i;
  EXPECT_FALSE(bin.find(entry(1000, 0).tag)) << "the first that was used once";
}

TEST(ZeroBinTest, AsPublishedDropsTheColdHalf) {
  BinRules rules;
  rules.heat_step = 63;
  rules.entries_kept = 0;
  ZeroBin bin(rules);
  for (std::uint32_t i = 0; i < 64; ++i) bin.put(entry(i, i));
  EXPECT_EQ(bin.size(), 64U);
  for (std::uint32_t i = 0; i < 40; ++i) bin.put(entry(100, 100));
  EXPECT_LT(bin.size(), 64U);
  EXPECT_TRUE(bin.find(entry(63, 0).tag));
  EXPECT_FALSE(bin.find(entry(0, 0).tag));
}

TEST(ZeroBinTest, RefusesBytesOfAWrongSize) {
  EXPECT_FALSE(ZeroBin::decode(std::string(29, 'x'), {}));
  EXPECT_EQ(must(ZeroBin::decode("", {})).size(), 0U);
  EXPECT_EQ(must(ZeroBin::decode(std::string(60, '\0'), {})).size(), 0U) << "empty ids";
}

}  // namespace
}  // namespace varve::index
