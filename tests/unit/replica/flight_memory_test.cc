// SPDX-License-Identifier: Apache-2.0
// Tests the memory of requests.
#include "replica/flight_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "replica/block_cache.h"

namespace varve::replica {
namespace {

constexpr std::size_t kMebibyte = 1U << 20;

TEST(FlightMemory, IsUsedAgain) {
  const auto memory = std::make_shared<FlightMemory>(64 * kMebibyte);
  const auto* const first = memory->take(4 * kMebibyte).get();
  EXPECT_EQ(memory->kept_bytes(), 4 * kMebibyte);
  EXPECT_EQ(memory->take(3 * kMebibyte).get(), first) << "new pages would be cleared";
  EXPECT_EQ(memory->take(4 * kMebibyte - kCacheCellBytes).get(), first);
  EXPECT_NE(memory->take(kMebibyte).get(), first) << "a small request would hold much memory";
  memory->release();
  EXPECT_EQ(memory->kept_bytes(), 0U);
  EXPECT_EQ(memory->mapped_bytes(), 0U);
}

TEST(FlightMemory, AllRequestsOfAWindowUseTheMemoryOfEarlierOnes) {
  const auto memory = std::make_shared<FlightMemory>(170 * kMebibyte);
  std::set<const std::byte*> known;
  for (int round = 0; round < 3; ++round) {
    std::vector<FlightMemory::Piece> pieces;
    // Containers of about the same length, which begin and end anywhere in a cell.
    for (std::uint64_t i = 0; i < 40; ++i) {
      pieces.push_back(memory->take(4 * kMebibyte -
                                    (i + static_cast<std::uint64_t>(round)) % 2 * kCacheCellBytes));
      if (round == 0) known.insert(pieces.back().get());
      EXPECT_TRUE(known.contains(pieces.back().get())) << "new pages would be cleared";
    }
  }
}

TEST(FlightMemory, LongMemoryBeginsWithAHugePage) {
  const auto memory = std::make_shared<FlightMemory>(64 * kMebibyte);
  std::vector<FlightMemory::Piece> pieces;
  for (const auto bytes : {2 * kMebibyte, 4 * kMebibyte + kCacheCellBytes, kMebibyte}) {
    pieces.push_back(memory->take(bytes));
    ASSERT_NE(pieces.back(), nullptr);
    pieces.back()[bytes - 1] = std::byte{1};
    if (bytes < FlightMemory::kHugePageBytes) continue;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces.back().get()) % FlightMemory::kHugePageBytes,
              0U);
  }
  EXPECT_EQ(memory->mapped_bytes(), 7 * kMebibyte + FlightMemory::kStep) << "no more is mapped";
}

TEST(FlightMemory, WhatWasUsedLastIsUsedNext) {
  const auto memory = std::make_shared<FlightMemory>(64 * kMebibyte);
  auto first = memory->take(4 * kMebibyte);
  auto second = memory->take(4 * kMebibyte);
  const auto* const last = first.get();
  second.reset();
  first.reset();
  EXPECT_EQ(memory->take(4 * kMebibyte).get(), last) << "it is most likely in the caches";
}

TEST(FlightMemory, KeepsNothingAboveItsLimit) {
  const auto memory = std::make_shared<FlightMemory>(24 * kMebibyte);
  {
    std::vector<FlightMemory::Piece> pieces;
    for (int i = 0; i < 10; ++i) pieces.push_back(memory->take(4 * kMebibyte));
    EXPECT_EQ(memory->mapped_bytes(), 40 * kMebibyte) << "what is in use has limits elsewhere";
    while (pieces.size() > 6) {
      pieces.pop_back();
      EXPECT_EQ(memory->kept_bytes(), 0U);
    }
    pieces.pop_back();
    EXPECT_EQ(memory->kept_bytes(), 4 * kMebibyte);
    pieces.push_back(memory->take(kMebibyte));
    EXPECT_LE(memory->mapped_bytes(), 24 * kMebibyte) << "kept memory makes room for other lengths";
  }
  EXPECT_LE(memory->mapped_bytes(), 24 * kMebibyte);
}

}  // namespace
}  // namespace varve::replica
