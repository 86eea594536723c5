// SPDX-License-Identifier: Apache-2.0
#include "version/staged_content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace varve::version {
namespace {

using Source = StagedContent::Source;

std::shared_ptr<OpenRecipe> recipe_of(std::uint64_t bytes) {
  auto recipe = std::make_shared<format::Recipe>();
  recipe->append_run({ChunkId::make(VersionNumber{1}, 0), 10, bytes});
  return std::make_shared<OpenRecipe>(recipe);
}

// Returns one letter per byte for the source that the ranges name.
std::string shape(const StagedContent& content) {
  std::string out;
  while (out.size() < content.size()) {
    const auto range = content.at(out.size());
    out.append(range.end - range.begin, range.source == Source::kHole   ? '.'
                                        : range.source == Source::kFile ? 'f'
                                                                        : 'r');
  }
  return out;
}

TEST(StagedContent, StartsAsItsRecipe) {
  const StagedContent content(recipe_of(6));
  EXPECT_EQ(shape(content), "rrrrrr");
  EXPECT_EQ(content.file_bytes(), 0U);
}

TEST(StagedContent, AWriteSplitsWhatItLiesIn) {
  StagedContent content(recipe_of(8));
  content.write(2, 4, 2);
  EXPECT_EQ(shape(content), "rrffrrrr");
  EXPECT_EQ(content.at(5).source_offset, 5U);
  EXPECT_EQ(content.file_bytes(), 2U);
}

TEST(StagedContent, AWriteBeyondTheEndLeavesAHole) {
  StagedContent content(recipe_of(3));
  content.write(5, 7, 5);
  EXPECT_EQ(shape(content), "rrr..ff");
}

TEST(StagedContent, TruncatedBytesDoNotComeBack) {
  StagedContent content(recipe_of(8));
  content.write(6, 10, 6);
  content.resize(4);
  content.resize(9);
  EXPECT_EQ(shape(content), "rrrr.....");
  EXPECT_EQ(content.file_bytes(), 0U);
}

TEST(StagedContent, PunchingDoesNotGrow) {
  StagedContent content(recipe_of(4));
  content.punch(2, 100);
  EXPECT_EQ(shape(content), "rr..");
}

TEST(StagedContent, NeighbouringRangesBecomeOne) {
  StagedContent content;
  content.write(4, 8, 4);
  content.write(0, 4, 0);
  content.write(8, 9, 8);
  EXPECT_EQ(content.ranges(), 1U);
  const auto recipe = recipe_of(100);
  content.clone(9, 20, recipe, 50);
  content.clone(20, 30, recipe, 61);
  EXPECT_EQ(content.ranges(), 2U);
  content.clone(30, 40, recipe, 0);
  EXPECT_EQ(content.ranges(), 3U);
}

// Recipes of older versions of Varve have such holes.
TEST(StagedContent, SeekFollowsHolesOfTheRecipe) {
  auto recipe = std::make_shared<format::Recipe>();
  recipe->append_run({ChunkId::make(VersionNumber{1}, 0), 1, 5000});
  recipe->append_hole(12'000);
  recipe->append_run({ChunkId::make(VersionNumber{1}, 7), 1, 10});
  recipe->append_hole(1);
  recipe->append_run({ChunkId::make(VersionNumber{1}, 9), 1, 5000});
  StagedContent content(std::make_shared<OpenRecipe>(recipe));
  EXPECT_EQ(content.seek(0, SeekFor::kHole).value(), 8192U);
  EXPECT_EQ(content.seek(9000, SeekFor::kHole).value(), 9000U);
  EXPECT_EQ(content.seek(8192, SeekFor::kData).value(), 16384U);
  EXPECT_EQ(content.seek(17'000, SeekFor::kData).value(), 17'000U);
  EXPECT_EQ(content.seek(17'010, SeekFor::kHole).value(), 22'011U);
  content.write(12'287, 12'288, 12'287);
  EXPECT_EQ(content.seek(9000, SeekFor::kHole).value(), 12'288U);
  EXPECT_EQ(content.seek(5000, SeekFor::kData).value(), 5000U);
  EXPECT_FALSE(content.seek(22'011, SeekFor::kData));
}

TEST(StagedContent, HolesAreWholeBlocksOrTheEnd) {
  StagedContent content;
  content.resize(9000);
  EXPECT_EQ(content.seek(0, SeekFor::kHole).value(), 0U);
  EXPECT_FALSE(content.seek(0, SeekFor::kData));
  content.write(8191, 8192, 8191);
  EXPECT_EQ(content.seek(1, SeekFor::kData).value(), 4096U);
  EXPECT_EQ(content.seek(4096, SeekFor::kHole).value(), 8192U);
  EXPECT_EQ(content.data_bytes_max(), 4096U);
  content.write(8999, 9000, 8999);
  EXPECT_EQ(content.seek(4096, SeekFor::kHole).value(), 9000U);
  content.resize(12'288);
  EXPECT_EQ(content.seek(4096, SeekFor::kHole).value(), 12'288U);
  content.resize(12'289);
  EXPECT_EQ(content.seek(4096, SeekFor::kHole).value(), 12'288U);
  EXPECT_FALSE(content.seek(12'288, SeekFor::kData));
  EXPECT_EQ(content.data_bytes_max(), 8192U);
}

TEST(StagedContent, RandomChangesFollowAModelAndSurviveCoding) {
  std::mt19937_64 random(20240611);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 20; ++round) {
    const auto recipe = recipe_of(500);
    StagedContent content(recipe);
    // Per byte: 0 for a hole, 1 for the file, otherwise 2 + its offset in the recipe.
    std::vector<std::uint64_t> model;
    for (std::uint64_t i = 0; i < 500; ++i) model.push_back(2 + i);
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t begin = below(700);
      const std::uint64_t end = begin + below(60);
      switch (below(5)) {
        case 0:
        case 1:
          content.write(begin, end, begin);
          if (end > begin && model.size() < end) model.resize(end);
          for (auto i = begin; i < end; ++i) model[i] = 1;
          break;
        case 2:
          content.punch(begin, end);
          for (auto i = begin; i < std::min<std::uint64_t>(end, model.size()); ++i) model[i] = 0;
          break;
        case 3: {
          const std::uint64_t offset = below(500 - (end - begin));
          content.clone(begin, end, recipe, offset);
          if (end > begin && model.size() < end) model.resize(end);
          for (auto i = begin; i < end; ++i) model[i] = 2 + offset + (i - begin);
          break;
        }
        default:
          if (below(10) != 0) break;
          content.resize(begin);
          model.resize(begin);
          break;
      }
    }
    std::string coded;
    content.encode(coded);
    base::ByteReader reader(coded);
    const auto decoded = StagedContent::decode(reader);
    ASSERT_TRUE(reader.done());
    for (const StagedContent* each : {static_cast<const StagedContent*>(&content), &decoded}) {
      ASSERT_EQ(each->size(), model.size());
      for (std::uint64_t at = 0; at < model.size(); ++at) {
        const auto range = each->at(at);
        const std::uint64_t seen = range.source == Source::kHole   ? 0
                                   : range.source == Source::kFile ? 1
                                                                   : 2 + range.source_offset;
        ASSERT_EQ(seen, model[at]) << "byte " << at << " of round " << round;
      }
      const auto file_bytes = each->file_bytes();
      ASSERT_EQ(file_bytes, static_cast<std::uint64_t>(std::count(model.begin(), model.end(), 1U)));
    }
    for (std::size_t bytes = 0; bytes < coded.size(); ++bytes) {
      base::ByteReader cut(std::string_view(coded).substr(0, bytes));
      static_cast<void>(StagedContent::decode(cut));
      EXPECT_FALSE(cut.done());
    }
  }
}

}  // namespace
}  // namespace varve::version
