// SPDX-License-Identifier: Apache-2.0
#include "base/id_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/coding.h"
#include "base/ids.h"

namespace varve::base {
namespace {

using Model = std::set<std::uint64_t>;

ChunkId id(std::uint32_t birth, std::uint32_t ordinal) {
  return ChunkId::make(VersionNumber{birth}, ordinal);
}

Model model_of(const IdRuns& set) {
  Model model;
  for (const auto& run : set.runs()) {
    for (std::uint32_t i = 0; i < run.count; ++i) model.insert(run.first.value + i);
  }
  return model;
}

TEST(IdRuns, IdsInAnOrderOfTheirOwnJoinOnlyWithTheRunBefore) {
  std::vector<IdRun> order;
  for (const auto& next : {IdRun{id(1, 5), 1}, IdRun{id(1, 6), 3}, IdRun{id(1, 4), 1},
                           IdRun{id(1, 5), 1}, IdRun{id(1, 7), 1}}) {
    append_run(order, next);
  }
  EXPECT_EQ(order, (std::vector<IdRun>{{id(1, 5), 4}, {id(1, 4), 2}, {id(1, 7), 1}}));
}

// The first id of a birth has the number after the last id of the birth before.
TEST(IdRuns, RunsOfTwoBirthsDoNotJoin) {
  const IdRun last{id(1, UINT32_MAX), 1};
  const IdRun first{id(2, 0), 1};
  ASSERT_EQ(last.first.value + 1, first.first.value);
  EXPECT_FALSE(continues(last, first));
  EXPECT_TRUE(continues({id(1, UINT32_MAX - 1), 1}, last));
}

TEST(IdRuns, RunWhoseCountWouldWrapBeginsAnew) {
  const IdRun most{id(1, 0), UINT32_MAX};
  EXPECT_FALSE(continues(most, {id(1, UINT32_MAX), 1}));
  EXPECT_TRUE(continues({id(1, 0), UINT32_MAX - 1}, {id(1, UINT32_MAX - 1), 1}));
}

// Returns runs over two births, dense enough to overlap and touch.
std::vector<IdRun> random_runs(std::mt19937& random) {
  std::vector<IdRun> runs(random() % 12);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (auto& run : runs) run = {id(1 + below(2), below(100)), 1 + below(15)};
  return runs;
}

Model model_of(const std::vector<IdRun>& runs) {
  Model model;
  for (const auto& run : runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) model.insert(run.first.value + i);
  }
  return model;
}

void expect_canonical(const IdRuns& set) {
  for (std::size_t i = 0; i < set.runs().size(); ++i) {
    ASSERT_GT(set.runs()[i].count, 0U);
    if (i == 0) continue;
    const auto& before = set.runs()[i - 1];
    const auto end = before.first.value + before.count;
    ASSERT_LE(end, set.runs()[i].first.value);
    // Adjacent runs are one run, unless a birth ends between the runs.
    if (end == set.runs()[i].first.value) {
      ASSERT_EQ(set.runs()[i].first.ordinal(), 0U);
    }
  }
}

TEST(IdRuns, AlgebraAgreesWithASetOfNumbers) {
  std::mt19937 random(42);
  for (int round = 0; round < 2000; ++round) {
    const auto runs_a = random_runs(random);
    const auto runs_b = random_runs(random);
    const IdRuns a = IdRuns::from(runs_a);
    const IdRuns b = IdRuns::from(runs_b);
    const Model model_a = model_of(runs_a);
    const Model model_b = model_of(runs_b);
    ASSERT_EQ(model_of(a), model_a) << "round " << round;
    ASSERT_EQ(a.size(), model_a.size());
    Model united;
    Model without;
    Model common;
    std::set_union(model_a.begin(), model_a.end(), model_b.begin(), model_b.end(),
                   std::inserter(united, united.end()));
    std::set_difference(model_a.begin(), model_a.end(), model_b.begin(), model_b.end(),
                        std::inserter(without, without.end()));
    std::set_intersection(model_a.begin(), model_a.end(), model_b.begin(), model_b.end(),
                          std::inserter(common, common.end()));
    ASSERT_EQ(model_of(a.unite(b)), united) << "round " << round;
    ASSERT_EQ(model_of(a.subtract(b)), without) << "round " << round;
    ASSERT_EQ(model_of(a.intersect(b)), common) << "round " << round;
    const std::uint64_t value = runs_a.empty() ? 0 : runs_a.front().first.value + round % 5;
    const auto below = std::distance(model_a.begin(), model_a.lower_bound(value));
    ASSERT_EQ(a.count_below(value), static_cast<std::uint64_t>(below));
    expect_canonical(a);
    expect_canonical(a.unite(b));
    expect_canonical(a.subtract(b));
    expect_canonical(a.intersect(b));
  }
}

TEST(IdRuns, RankAndSelectAreInverse) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const IdRuns set = IdRuns::from(random_runs(random));
    std::uint64_t rank = 0;
    for (const auto value : model_of(set)) {
      ASSERT_EQ(set.select(rank), ChunkId{value});
      ASSERT_EQ(set.rank(ChunkId{value}), rank);
      ++rank;
    }
    ASSERT_EQ(rank, set.size());
  }
}

TEST(IdRuns, AbsentIdHasNoRank) {
  const IdRuns set = IdRuns::from({{id(1, 10), 5}});
  EXPECT_FALSE(set.contains(id(1, 9)));
  EXPECT_TRUE(set.contains(id(1, 10)));
  EXPECT_TRUE(set.contains(id(1, 14)));
  EXPECT_FALSE(set.contains(id(1, 15)));
  EXPECT_FALSE(set.contains(id(2, 10)));
  EXPECT_FALSE(IdRuns().contains(id(1, 1)));
}

TEST(IdRuns, TwoBirthsAreNeverOneRun) {
  const IdRuns set = IdRuns::from({{id(1, 0xffffffff), 1}, {id(2, 0), 1}});
  ASSERT_EQ(set.runs().size(), 2U);
  EXPECT_EQ(set.size(), 2U);
}

TEST(IdRuns, RandomSetsRoundTripThroughBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const IdRuns set = IdRuns::from(random_runs(random));
    std::string bytes;
    set.encode(bytes);
    const auto back = IdRuns::decode(bytes);
    ASSERT_TRUE(back.has_value());
    ASSERT_EQ(*back, set);
    ASSERT_EQ(back->size(), set.size());
  }
}

TEST(IdRuns, EveryTruncationReturnsCorrupt) {
  const IdRuns set = IdRuns::from({{id(1, 3), 300}, {id(9, 70000), 2}, {id(9, 80000), 1}});
  std::string bytes;
  set.encode(bytes);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto back = IdRuns::decode(std::string_view(bytes).substr(0, n));
    ASSERT_FALSE(back.has_value()) << n;
    EXPECT_EQ(back.error().code(), ErrorCode::kCorrupt);
  }
  EXPECT_FALSE(IdRuns::decode(bytes + '\0').has_value());
}

TEST(IdRuns, RunPastItsBirthReturnsCorrupt) {
  std::string bytes;
  ByteWriter w(bytes);
  w.varint(1);
  w.varint(id(1, 0xffffffff).value);
  w.varint(2);
  EXPECT_FALSE(IdRuns::decode(bytes).has_value());
}

// The sum of the last id and a count would be 0, and a walk would begin again.
TEST(IdRuns, RunOfTheLastBirthReturnsCorrupt) {
  const auto decode = [](ChunkId first, std::uint32_t count) {
    std::string bytes;
    ByteWriter w(bytes);
    for (const std::uint64_t v : {std::uint64_t{1}, first.value, std::uint64_t{count}}) w.varint(v);
    return IdRuns::decode(bytes).has_value();
  };
  EXPECT_TRUE(decode(id(0xfffffffe, 0xffffffff), 1));
  EXPECT_FALSE(decode(id(0xffffffff, 0), 1));
  EXPECT_FALSE(decode(id(0xffffffff, 1), 0xffffffff));
  EXPECT_FALSE(decode(id(0xffffffff, 0xffffffff), 1));
}

TEST(Numbers, TheLastNumberHasNoSuccessor) {
  EXPECT_EQ(number_after(ContainerNumber{7}), ContainerNumber{8});
  EXPECT_EQ(number_after(ContainerNumber{0x7fffffff}), ContainerNumber{0x7fffffff});
  EXPECT_EQ(number_after(ContainerNumber{0xffffffff}), ContainerNumber{0xffffffff});
  EXPECT_EQ(number_after(SegmentNumber{0x7fffffff}), SegmentNumber{0x7fffffff});
  EXPECT_EQ(number_after(GroupNumber{0x7fffffff}), GroupNumber{0x80000000});
  EXPECT_EQ(number_after(GroupNumber{0xffffffff}), GroupNumber{0xffffffff});
  EXPECT_EQ(number_after(VersionNumber{0xfffffffe}), 0xffffffffU);
  EXPECT_EQ(number_after(VersionNumber{0xffffffff}), 0xffffffffU);
}

TEST(IdRuns, CountBeyondTheBytesReturnsCorrupt) {
  std::string bytes;
  ByteWriter(bytes).varint(1ULL << 60);
  EXPECT_FALSE(IdRuns::decode(bytes).has_value());
}

TEST(IdRuns, RunsThatTouchInsideABirthReturnCorrupt) {
  const auto decode = [](ChunkId first, std::uint32_t count, std::uint64_t gap) {
    std::string bytes;
    ByteWriter w(bytes);
    for (const std::uint64_t v :
         {std::uint64_t{2}, first.value, std::uint64_t{count}, gap, std::uint64_t{5}}) {
      w.varint(v);
    }
    return IdRuns::decode(bytes).has_value();
  };
  EXPECT_TRUE(decode(id(1, 10), 5, 1));
  EXPECT_FALSE(decode(id(1, 10), 5, 0));
  EXPECT_TRUE(decode(id(1, 0xfffffffe), 2, 0)) << "the next birth begins";
}

}  // namespace
}  // namespace varve::base
