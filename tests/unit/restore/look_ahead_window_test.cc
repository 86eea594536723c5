// SPDX-License-Identifier: Apache-2.0
#include "restore/look_ahead_window.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace varve::restore {
namespace {

constexpr std::uint64_t kNever = LookAheadWindow::kNever;

TEST(LookAheadWindow, KnowsNextUseOfEveryChunkLikeASearchDoes) {
  std::mt19937 random(11);
  LookAheadWindow window(64);
  std::deque<ChunkId> model;
  std::uint64_t begin = 0;
  for (int step = 0; step < 20000; ++step) {
    // Few ids, far apart in value, so that probing and duplicates both happen a lot.
    if (!window.full() && (model.empty() || random() % 2 == 0)) {
      const ChunkId id{(random() % 50) * 0x100000001ULL};
      window.push(id);
      model.push_back(id);
    } else {
      window.pop();
      model.pop_front();
      ++begin;
    }
    ASSERT_EQ(window.begin(), begin);
    ASSERT_EQ(window.end(), begin + model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      std::uint64_t next = kNever;
      for (std::size_t j = i + 1; j < model.size() && next == kNever; ++j) {
        if (model[j] == model[i]) next = begin + j;
      }
      ASSERT_EQ(window.id(begin + i), model[i]);
      ASSERT_EQ(window.next_use(begin + i), next);
    }
    const ChunkId probe{(random() % 60) * 0x100000001ULL};
    std::uint64_t first = kNever;
    for (std::size_t j = 0; j < model.size() && first == kNever; ++j) {
      if (model[j] == probe) first = begin + j;
    }
    ASSERT_EQ(window.first_use(probe), first);
  }
}

TEST(LookAheadWindow, HoldsAsManyChunksAsAskedForRoundedDown) {
  LookAheadWindow window(100);
  for (std::uint64_t i = 0; i < 64; ++i) {
    ASSERT_FALSE(window.full());
    window.push(ChunkId{i});
  }
  EXPECT_TRUE(window.full());
}

}  // namespace
}  // namespace varve::restore
