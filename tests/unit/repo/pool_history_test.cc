// SPDX-License-Identifier: Apache-2.0
// Random histories of several series that share a pool, against a model that holds the content of
// every file. After each step that may free space, all versions read back as the model says, and
// the users of the pool's containers agree with a count of the versions' chunks.
//
// VARVE_TEST_STEPS=N runs N steps instead of the usual number; VARVE_TEST_SEED=N another history.
#include "pool_history.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace varve {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::stoull(text);
}

TEST(PoolHistoryTest, AllVersionsAreWholeAndAllUsersAreCounted) {
  constexpr std::uint64_t kStepsOfAll = 3'000;
  constexpr std::uint64_t kStepsOfOneHistory = 1'000;
  auto left = number_from("VARVE_TEST_STEPS", kStepsOfAll);
  std::size_t aliases_max = 0;
  for (auto seed = number_from("VARVE_TEST_SEED", 1); left > 0; ++seed) {
    PoolHistory history(seed);
    const auto steps = std::min(left, kStepsOfOneHistory);
    for (std::uint64_t i = 0; i < steps; ++i) {
      SCOPED_TRACE("VARVE_TEST_SEED=" + std::to_string(seed) + ", step " + std::to_string(i));
      try {
        history.step();
      } catch (const std::exception& failure) {
        ADD_FAILURE() << failure.what();
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << history.last();
    }
    history.finish();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", at the end";
    if (steps == kStepsOfOneHistory) {
      EXPECT_GT(history.shared_max(), 2U) << "no container had two users";
      aliases_max = std::max(aliases_max, history.aliases_max());
    }
    left -= steps;
  }
  EXPECT_GT(aliases_max, 0U) << "no history made aliases";
  std::printf("at most %zu aliases\n", aliases_max);
}

}  // namespace
}  // namespace varve
