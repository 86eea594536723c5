// SPDX-License-Identifier: Apache-2.0
#include "parity/galois.h"

#include <gtest/gtest.h>
#include <isa-l/erasure_code.h>

#include <cstddef>
#include <random>
#include <vector>

namespace varve::parity {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes random_bytes(std::mt19937& random, std::size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

TEST(Galois, CauchyMatrixIsThatOfIsal) {
  for (const int columns : {1, 2, 100, 200}) {
    const int rows = columns + 50;
    Bytes ours(static_cast<std::size_t>(rows * columns), 0xee);
    Bytes theirs(ours.size());
    portable::gf_gen_cauchy1_matrix(ours.data(), rows, columns);
    ::gf_gen_cauchy1_matrix(theirs.data(), rows, columns);
    EXPECT_EQ(ours, theirs) << columns;
  }
}

TEST(Galois, InverseIsThatOfIsal) {
  std::mt19937 random(1);
  for (const int count : {1, 2, 3, 8, 25}) {
    for (int round = 0; round < 20; ++round) {
      Bytes matrix = random_bytes(random, static_cast<std::size_t>(count * count));
      if (round % 4 == 0) std::fill_n(matrix.begin(), count, static_cast<unsigned char>(0));
      if (round % 4 == 1) matrix.front() = 0;  // Rows must be exchanged.
      Bytes copy = matrix;
      Bytes ours(matrix.size());
      Bytes theirs(matrix.size());
      const int found = portable::gf_invert_matrix(matrix.data(), ours.data(), count);
      ASSERT_EQ(found == 0, ::gf_invert_matrix(copy.data(), theirs.data(), count) == 0);
      if (found == 0) {
        ASSERT_EQ(ours, theirs) << count;
      }
    }
  }
}

TEST(Galois, SumsOfBlocksAreThoseOfIsal) {
  constexpr int kSources = 7;
  constexpr int kCount = 3;
  constexpr std::size_t kSourceBytes = 1000;
  std::mt19937 random(2);
  Bytes coefficients = random_bytes(random, kSources * kCount);
  Bytes ours(std::size_t{32} * kSources * kCount);
  Bytes theirs(ours.size());
  portable::ec_init_tables(kSources, kCount, coefficients.data(), ours.data());
  ::ec_init_tables(kSources, kCount, coefficients.data(), theirs.data());
  std::vector<Bytes> blocks;
  std::vector<unsigned char*> sources;
  for (int i = 0; i < kSources; ++i) blocks.push_back(random_bytes(random, kSourceBytes));
  for (auto& block : blocks) sources.push_back(block.data());
  std::vector<Bytes> sums(2 * kCount, random_bytes(random, kSourceBytes));
  std::vector<unsigned char*> out;
  for (auto& sum : sums) out.push_back(sum.data());
  portable::ec_encode_data(kSourceBytes, kSources, kCount, ours.data(), sources.data(), out.data());
  ::ec_encode_data(kSourceBytes, kSources, kCount, theirs.data(), sources.data(),
                   out.data() + kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], sums[kCount + i]);
  for (int i = 0; i < kSources; ++i) {
    portable::ec_encode_data_update(kSourceBytes, kSources, kCount, i, ours.data(), sources[5],
                                    out.data());
    ::ec_encode_data_update(kSourceBytes, kSources, kCount, i, theirs.data(), sources[5],
                            out.data() + kCount);
  }
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], sums[kCount + i]);
}

}  // namespace
}  // namespace varve::parity
