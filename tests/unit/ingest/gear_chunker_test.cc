// SPDX-License-Identifier: Apache-2.0
#include "ingest/gear_chunker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "support/chunker_test_data.h"

namespace varve::ingest {
namespace {

using test::Bytes;

/// The definition in gear_chunker.h, sum by sum.
std::size_t cut_by_definition(ChunkSizes sizes, const Bytes& data) {
  const auto avg_bits = static_cast<unsigned>(std::countr_zero(sizes.avg));
  const std::size_t end = std::min<std::size_t>(sizes.max, data.size());
  for (std::size_t i = sizes.min; i < end; ++i) {
    std::uint32_t hash = 0;
    for (std::size_t k = 0; k < 16; ++k) {
      hash +=
          static_cast<std::uint32_t>(kGear16Table.entries[std::to_integer<unsigned>(data[i - k])])
          << k;
    }
    const unsigned bits = i < sizes.avg ? avg_bits + 2 : avg_bits - 2;
    if ((hash & 0xffffU) >> (16 - bits) == 0) return i + 1;
  }
  return end;
}

class Gear16Forms : public testing::TestWithParam<ChunkSizes> {
 protected:
  void SetUp() override {
    if (gear16_avx512_scan() == nullptr) GTEST_SKIP() << "this processor has no AVX-512 with GFNI";
  }
  void expect_same(std::span<const std::byte> data, const char* what) {
    ASSERT_EQ(gear16_avx512_scan()(rule_, data), gear16_scan_scalar(rule_, data))
        << what << ", " << data.size() << " bytes";
  }
  void expect_same_cuts(const Bytes& data, const char* what) {
    for (std::span<const std::byte> rest(data); !rest.empty();) {
      ASSERT_NO_FATAL_FAILURE(expect_same(rest, what)) << "at " << data.size() - rest.size();
      rest = rest.subspan(gear16_scan_scalar(rule_, rest));
    }
  }
  const Gear16Rule rule_ = make_gear16_rule(GetParam());
};

TEST_P(Gear16Forms, CutAlikeInRandomBytes) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expect_same_cuts(test::random_bytes(2 << 20, seed), "random"));
  }
}

TEST_P(Gear16Forms, CutAlikeInText) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expect_same_cuts(test::text_bytes(1 << 20, seed), "text"));
  }
}

TEST_P(Gear16Forms, CutAlikeInRepeatedPatterns) {
  for (const std::size_t period : {1U, 2U, 3U, 7U, 15U, 16U, 17U, 31U, 64U, 1000U, 4097U}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      ASSERT_NO_FATAL_FAILURE(
          expect_same_cuts(test::repeated_bytes(300000, period, seed), "repeated"));
    }
  }
}

TEST_P(Gear16Forms, CutAlikeAtEveryLengthNearAStep) {
  const auto sizes = GetParam();
  // Text and zeros rarely end a chunk before the data ends, so the last step is what decides.
  const Bytes inputs[] = {test::random_bytes(sizes.max + 200, 5),
                          test::text_bytes(sizes.max + 200, 6), Bytes(sizes.max + 200)};
  for (const Bytes& input : inputs) {
    for (const std::size_t middle :
         {sizes.min, sizes.min + 64, sizes.avg, sizes.avg + 640, sizes.max}) {
      for (std::size_t length = middle - 130; length <= middle + 130; ++length) {
        const std::span<const std::byte> data(input);
        for (std::size_t offset = 0; offset < 3; ++offset) {
          ASSERT_NO_FATAL_FAILURE(expect_same(data.subspan(offset, length), "ends near a step"));
        }
      }
    }
  }
}

TEST_P(Gear16Forms, CutAlikeAtEveryPositionOfAStep) {
  // A chunk of random bytes cut short so that its last position is the data's last byte, or one
  // beside it: each end inside a step comes up.
  for (std::uint64_t seed = 100; seed < 300; ++seed) {
    const Bytes input = test::random_bytes(GetParam().max, seed);
    const std::size_t length = gear16_scan_scalar(rule_, input);
    for (std::size_t n = length - 1; n <= std::min(length + 1, input.size()); ++n) {
      ASSERT_NO_FATAL_FAILURE(expect_same(std::span(input).first(n), "cut short"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Gear16Forms, testing::ValuesIn(test::kAllSizes));

class Gear16 : public testing::TestWithParam<ChunkSizes> {};

TEST_P(Gear16, CutsWhereItsDefinitionSays) {
  const auto rule = make_gear16_rule(GetParam());
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Bytes random = test::random_bytes(GetParam().max + 100, seed);
    ASSERT_EQ(gear16_scan_scalar(rule, random), cut_by_definition(GetParam(), random)) << seed;
    const Bytes text = test::text_bytes(GetParam().max + 100, seed);
    ASSERT_EQ(gear16_scan_scalar(rule, text), cut_by_definition(GetParam(), text)) << seed;
  }
}

TEST_P(Gear16, RunOfAnyByteMakesTheLongestChunk) {
  const auto rule = make_gear16_rule(GetParam());
  for (unsigned value = 0; value < 256; ++value) {
    const Bytes data(GetParam().max + 1, static_cast<std::byte>(value));
    ASSERT_EQ(gear16_scan_scalar(rule, data), GetParam().max) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Gear16, testing::ValuesIn(test::kAllSizes));

TEST(Gear16Table, HasKnownEntries) {
  // Computed apart from this code; they are part of the format.
  EXPECT_EQ(kGear16Table.entries[0x00], 0xb27a);
  EXPECT_EQ(kGear16Table.entries[0x20], 0x9172);
  EXPECT_EQ(kGear16Table.entries[0xff], 0x5d40);
}

TEST(Gear16Table, HasNoEntryTwice) {
  EXPECT_EQ(std::set(kGear16Table.entries.begin(), kGear16Table.entries.end()).size(), 256U);
}

TEST(Gear16Chunker, ScalarFormIsScalar) {
  EXPECT_FALSE(Gear16Chunker(ChunkSizes{}, Gear16Form::kScalar).is_simd());
}

TEST(Gear16Chunker, FastestFormIsSimdWhereThereIsOne) {
  EXPECT_EQ(Gear16Chunker(ChunkSizes{}, Gear16Form::kFastest).is_simd(),
            gear16_avx512_scan() != nullptr);
}

}  // namespace
}  // namespace varve::ingest
