// SPDX-License-Identifier: Apache-2.0
#include "parity/reed_solomon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace varve::parity {
namespace {

constexpr std::size_t kBytes = 512;
using Blocks = std::vector<std::vector<std::byte>>;

Blocks random_blocks(std::size_t count, std::mt19937& random) {
  Blocks blocks(count, std::vector<std::byte>(kBytes));
  for (auto& block : blocks) {
    for (auto& byte : block) byte = static_cast<std::byte>(random());
  }
  return blocks;
}

std::vector<std::byte*> pointers(Blocks& blocks) {
  std::vector<std::byte*> all;
  for (auto& block : blocks) all.push_back(block.data());
  return all;
}

Blocks parity_of(const ReedSolomon& code, const Blocks& data, std::size_t count) {
  Blocks parity(count, std::vector<std::byte>(kBytes));
  const auto out = pointers(parity);
  for (std::uint32_t i = 0; i < data.size(); ++i) code.add(i, data[i].data(), out, kBytes);
  return parity;
}

// Returns `count` different numbers below `end`.
std::vector<std::uint32_t> draw(std::size_t count, std::uint32_t end, std::mt19937& random) {
  std::vector<std::uint32_t> all(end);
  std::iota(all.begin(), all.end(), 0U);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(count);
  return all;
}

TEST(ReedSolomon, AnyLossUpToTheParityComesBack) {
  std::mt19937 random(7);
  const std::pair<std::uint32_t, std::uint32_t> shapes[] = {{1, 1},  {1, 5},    {5, 1},
                                                            {20, 4}, {200, 50}, {199, 10}};
  for (const auto& [data_blocks, parity_blocks] : shapes) {
    const ReedSolomon code(data_blocks, parity_blocks);
    const auto data = random_blocks(data_blocks, random);
    const auto parity = parity_of(code, data, parity_blocks);
    for (int round = 0; round < 12; ++round) {
      const auto lost_data = random() % (std::min(data_blocks, parity_blocks) + 1);
      const auto lost = draw(lost_data, data_blocks, random);
      const auto lost_parity = draw(parity_blocks - lost_data, parity_blocks, random);
      auto damaged = data;
      for (const auto i : lost) std::fill(damaged[i].begin(), damaged[i].end(), std::byte{0xee});
      std::vector<const std::byte*> rows;
      for (const auto& row : parity) rows.push_back(row.data());
      for (const auto i : lost_parity) rows[i] = nullptr;
      ASSERT_TRUE(code.restore(pointers(damaged), lost, rows, kBytes));
      ASSERT_EQ(damaged, data) << data_blocks << "+" << parity_blocks;
    }
  }
}

// Multiplies as docs/FORMAT.md §10 specifies, bit by bit. Any library must give the same bytes.
unsigned multiply(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a = (a << 1) ^ ((a & 0x80) != 0 ? 0x11d : 0);
  }
  return product;
}
unsigned inverse(unsigned a) {
  unsigned candidate = 1;
  while (multiply(a, candidate) != 1) ++candidate;
  return candidate;
}

TEST(ReedSolomon, TheParityIsThatOfTheFormat) {
  std::mt19937 random(9);
  constexpr std::uint32_t kData = 7;
  constexpr std::uint32_t kParity = 3;
  const ReedSolomon code(kData, kParity);
  const auto data = random_blocks(kData, random);
  const auto parity = parity_of(code, data, kParity);
  for (std::uint32_t j = 0; j < kParity; ++j) {
    for (std::size_t at = 0; at < kBytes; at += 37) {
      unsigned sum = 0;
      for (std::uint32_t i = 0; i < kData; ++i) {
        sum ^= multiply(inverse((kData + j) ^ i), std::to_integer<unsigned>(data[i][at]));
      }
      EXPECT_EQ(std::to_integer<unsigned>(parity[j][at]), sum);
    }
  }
}

TEST(ReedSolomon, OneLossTooManyIsRefusedAndChangesNothing) {
  std::mt19937 random(8);
  const ReedSolomon code(30, 3);
  auto data = random_blocks(30, random);
  const auto parity = parity_of(code, data, 3);
  const auto before = data;
  const std::vector<const std::byte*> rows{parity[0].data(), parity[1].data(), parity[2].data()};
  const std::vector<std::uint32_t> four{1, 5, 8, 29};
  EXPECT_FALSE(code.restore(pointers(data), four, rows, kBytes));
  const std::vector<const std::byte*> one{nullptr, parity[1].data(), nullptr};
  const std::vector<std::uint32_t> two{0, 2};
  EXPECT_FALSE(code.restore(pointers(data), two, one, kBytes));
  EXPECT_EQ(data, before);
}

}  // namespace
}  // namespace varve::parity
