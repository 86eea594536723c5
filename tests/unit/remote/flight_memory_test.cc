// SPDX-License-Identifier: Apache-2.0
// Tests the memory of requests.
#include "remote/flight_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "remote/block_cache.h"

namespace varve::remote {
namespace {

constexpr std::size_t kMebibyte = 1U << 20;

TEST(FlightMemory, IsUsedAgain) {
  const auto memory = std::make_shared<FlightMemory>(64 * kMebibyte);
  const auto* const first = memory->take(4 * kMebibyte).get();
  EXPECT_EQ(memory->take(3 * kMebibyte).get(), first) << "new pages would be cleared";
  EXPECT_EQ(memory->take(8 * kMebibyte - kCacheCellBytes).get(), first);
  EXPECT_EQ(memory->touched_bytes(), 8 * kMebibyte);
  memory->release();
  EXPECT_EQ(memory->touched_bytes(), 0U);
}

// Containers of about the same length, alone or two in a request, which end in any order.
TEST(FlightMemory, RequestsOfAnyLengthUseTheMemoryOfEarlierOnes) {
  const auto memory = std::make_shared<FlightMemory>(170 * kMebibyte);
  std::deque<std::pair<FlightMemory::Piece, std::size_t>> pieces;
  std::size_t used = 0;
  std::minstd_rand random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto bytes = (random() % 3 == 0 ? 4 : 8) * kMebibyte + random() % 4 * kCacheCellBytes;
    pieces.emplace_back(memory->take(bytes), bytes);
    ASSERT_NE(pieces.back().first, nullptr);
    pieces.back().first[0] = pieces.back().first[bytes - 1] = static_cast<std::byte>(i);
    used += bytes;
    while (used > 100 * kMebibyte) {
      const auto at = static_cast<std::ptrdiff_t>(random() % 3);
      EXPECT_EQ(pieces[at].first[0], pieces[at].first[pieces[at].second - 1]) << "parts overlap";
      used -= pieces[at].second;
      pieces.erase(pieces.begin() + at);
    }
  }
  EXPECT_LT(memory->touched_bytes(), 155 * kMebibyte);
  pieces.clear();
  EXPECT_NE(memory->take(168 * kMebibyte), nullptr);
  memory->release();
  EXPECT_EQ(memory->touched_bytes(), 0U) << "the parts are one again";
}

TEST(FlightMemory, TheAreaBeginsWithAHugePage) {
  const auto memory = std::make_shared<FlightMemory>(64 * kMebibyte);
  const auto piece = memory->take(4 * kMebibyte + kCacheCellBytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.get()) % FlightMemory::kHugePageBytes, 0U);
}

TEST(FlightMemory, ReleaseKeepsWhatIsUsed) {
  const auto memory = std::make_shared<FlightMemory>(64 * kMebibyte);
  auto first = memory->take(4 * kMebibyte);
  auto second = memory->take(4 * kMebibyte);
  second[0] = second[4 * kMebibyte - 1] = std::byte{7};
  first.reset();
  memory->release();
  EXPECT_EQ(second[0], std::byte{7});
  EXPECT_EQ(second[4 * kMebibyte - 1], std::byte{7});
  EXPECT_EQ(memory->touched_bytes(), 8 * kMebibyte);
  first = memory->take(4 * kMebibyte);
  EXPECT_EQ(first[0], std::byte{0}) << "the system has given other memory";
}

TEST(FlightMemory, WhatDoesNotFitIsMappedAlone) {
  const auto memory = std::make_shared<FlightMemory>(24 * kMebibyte);
  std::vector<FlightMemory::Piece> pieces;
  for (int i = 0; i < 10; ++i) {
    pieces.push_back(memory->take(4 * kMebibyte));
    ASSERT_NE(pieces.back(), nullptr);
    pieces.back()[4 * kMebibyte - 1] = std::byte{1};
  }
  const auto small = memory->take(1);
  small[0] = std::byte{1};
  EXPECT_EQ(memory->touched_bytes(), 24 * kMebibyte);
}

}  // namespace
}  // namespace varve::remote
