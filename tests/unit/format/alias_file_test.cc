// SPDX-License-Identifier: Apache-2.0
#include "format/alias_file.h"

#include <gtest/gtest.h>

#include <string>

#include "base/coding.h"

namespace varve::format {
namespace {

ChunkId pooled(std::uint32_t birth, std::uint32_t ordinal) {
  return ChunkId::make(static_cast<VersionNumber>(kPoolBit + birth), ordinal);
}
TaggedAliases sample(std::uint32_t first, std::uint32_t count) {
  TaggedAliases one{{pooled(5, first), count, pooled(2, first + 70)}, {}};
  for (std::uint32_t i = 0; i < count; ++i) one.tags.push_back(0x0102030405060708ULL * (i + 3));
  return one;
}
std::string sample_block() {
  AliasBlockEncoder block;
  EXPECT_TRUE(block.add(sample(3, 2)));
  EXPECT_TRUE(block.add(sample(900, 17)));
  return block.take();
}

TEST(AliasFile, BlockGivesItsRunsBack) {
  const auto block = sample_block();
  const auto runs = decode_alias_block(base::as_bytes(block));
  ASSERT_TRUE(runs.has_value());
  EXPECT_EQ(*runs, (std::vector{sample(3, 2), sample(900, 17)}));
}

TEST(AliasFile, AnyChangedByteOfABlockIsFound) {
  const auto block = sample_block();
  for (std::size_t at = 0; at < block.size(); ++at) {
    auto bad = block;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(decode_alias_block(base::as_bytes(bad)).has_value()) << at;
  }
  for (std::size_t left = 0; left < block.size(); ++left) {
    EXPECT_FALSE(decode_alias_block(base::as_bytes(block).first(left)).has_value()) << left;
  }
}

TEST(AliasFile, AnyChangedByteOfAHeaderIsFound) {
  const auto header = encode_alias_header({3, 40});
  EXPECT_EQ(*decode_alias_header(base::as_bytes(header)), (AliasFileHeader{3, 40}));
  for (std::size_t at = 0; at < header.size(); ++at) {
    auto bad = header;
    bad[at] = static_cast<char>(bad[at] ^ 0x01);
    EXPECT_FALSE(decode_alias_header(base::as_bytes(bad)).has_value()) << at;
  }
}

TEST(AliasFile, FullBlockTakesNoMoreRuns) {
  AliasBlockEncoder block;
  EXPECT_TRUE(block.add(sample(0, kAliasesInBlockMax)));
  EXPECT_FALSE(block.add(sample(100'000, kAliasesInBlockMax)));
  const auto first = block.take();
  EXPECT_TRUE(block.empty());
  EXPECT_TRUE(block.add(sample(100'000, kAliasesInBlockMax)));
  EXPECT_EQ(decode_alias_block(base::as_bytes(first))->size(), 1U);
  EXPECT_EQ(decode_alias_block(base::as_bytes(block.take()))->front().run.first,
            pooled(5, 100'000));
}

TEST(AliasFile, RunsKeepTheRulesOfThePool) {
  const AliasRun good{pooled(5, 7), 3, pooled(2, 9)};
  EXPECT_TRUE(is_alias_run(good));
  EXPECT_FALSE(is_alias_run({good.first, 0, good.target}));
  EXPECT_FALSE(is_alias_run({good.first, 3, good.first}));
  EXPECT_FALSE(is_alias_run({ChunkId::make(VersionNumber{5}, 7), 3, good.target}));
  EXPECT_FALSE(is_alias_run({good.first, 3, ChunkId::make(VersionNumber{5}, 7)}));
  EXPECT_FALSE(is_alias_run({pooled(5, UINT32_MAX), 2, good.target}));
  EXPECT_FALSE(is_alias_run({good.first, 2, pooled(2, UINT32_MAX)}));
}

}  // namespace
}  // namespace varve::format
