// SPDX-License-Identifier: Apache-2.0
#include "format/recipe.h"
#include "format/recipe_decoder.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/coding.h"
#include "format/dir_node.h"

namespace varve::format {
namespace {

ChunkId id(std::uint32_t birth, std::uint32_t ordinal) {
  return ChunkId::make(VersionNumber{birth}, ordinal);
}

// Returns the decoded recipe, or nothing if it does not decode.
std::optional<Recipe> decoded(std::string_view bytes) {
  base::ByteReader reader(bytes);
  ChunkId base;
  Recipe recipe = decode_recipe(reader, base);
  if (!reader.done()) return std::nullopt;
  return recipe;
}

std::string encoded(const Recipe& recipe) {
  std::string out;
  ChunkId base;
  encode_recipe(recipe, base, out);
  return out;
}

std::string varints(const std::vector<std::uint64_t>& values) {
  std::string out;
  base::ByteWriter w(out);
  for (const auto v : values) w.varint(v);
  return out;
}

Recipe random_recipe(std::mt19937_64& random) {
  Recipe recipe;
  const std::size_t parts = random() % 20;
  ChunkId next = id(1 + static_cast<std::uint32_t>(random() % 5), 0);
  for (std::size_t i = 0; i < parts; ++i) {
    if (random() % 4 == 0) {
      recipe.append_hole(1 + random() % (1ULL << 40));
      continue;
    }
    if (random() % 3 == 0) next = ChunkId{random()};
    recipe.append_chunk(next, 1 + static_cast<std::uint32_t>(random() % 65536));
    next = next.plus(1);
  }
  return recipe;
}

TEST(Recipe, ChunksThatFollowEachOtherAreOneRun) {
  Recipe recipe;
  recipe.append_chunk(id(2, 5), 100);
  recipe.append_chunk(id(2, 6), 200);
  recipe.append_chunk(id(2, 8), 300);
  EXPECT_EQ(recipe.runs, (std::vector<RecipeRun>{{id(2, 5), 2, 300}, {id(2, 8), 1, 300}}));
  EXPECT_EQ(recipe.bytes(), 600U);
}

TEST(Recipe, RunEndsWithItsBirth) {
  Recipe recipe;
  recipe.append_chunk(id(1, 0xffffffff), 10);
  recipe.append_chunk(id(2, 0), 10);
  EXPECT_EQ(recipe.runs.size(), 2U);
  EXPECT_EQ(decoded(encoded(recipe)), recipe);
}

TEST(Recipe, HolesJoinAndCountAsBytesNotData) {
  Recipe recipe;
  recipe.append_hole(0);
  EXPECT_TRUE(recipe.runs.empty());
  recipe.append_hole(10);
  recipe.append_hole(5);
  recipe.append_chunk(id(1, 1), 7);
  EXPECT_EQ(recipe.runs.size(), 2U);
  EXPECT_EQ(recipe.bytes(), 22U);
  EXPECT_EQ(recipe.data_bytes(), 7U);
}

TEST(Recipe, RandomRecipesRoundTrip) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    const Recipe recipe = random_recipe(random);
    ASSERT_EQ(decoded(encoded(recipe)), recipe) << i;
  }
}

TEST(Recipe, RecipesInARowShareTheirBase) {
  std::mt19937_64 random(6);
  std::vector<Recipe> recipes;
  std::string bytes;
  ChunkId base;
  for (int i = 0; i < 100; ++i) {
    recipes.push_back(random_recipe(random));
    encode_recipe(recipes.back(), base, bytes);
  }
  base::ByteReader reader(bytes);
  ChunkId back;
  for (const auto& recipe : recipes) ASSERT_EQ(decode_recipe(reader, back), recipe);
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(back, base);
}

TEST(Recipe, NextFileInIngestOrderCostsFiveBytes) {
  Recipe recipe;
  recipe.append_chunk(id(7, 1000), 8000);
  ChunkId base = id(7, 1000);
  std::string bytes;
  encode_recipe(recipe, base, bytes);
  EXPECT_EQ(bytes.size(), 5U);  // 1 run, 1 chunk, delta 0, two bytes of length
  EXPECT_EQ(base, id(7, 1001));
}

TEST(Recipe, EveryTruncationFails) {
  Recipe recipe;
  recipe.append_chunk(id(300, 70000), 60000);
  recipe.append_hole(1U << 20);
  recipe.append_chunk(id(2, 1), 1);
  const std::string bytes = encoded(recipe);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decoded(std::string_view(bytes).substr(0, n)).has_value()) << n;
  }
}

TEST(Recipe, ImpossibleRunsFail) {
  EXPECT_TRUE(decoded(varints({1, 2, 0, 100})).has_value());
  EXPECT_FALSE(decoded(varints({1, 2, 0, 1})).has_value()) << "two chunks in one byte";
  EXPECT_FALSE(decoded(varints({1, 1, 0, 131073})).has_value()) << "a chunk over a frame";
  EXPECT_FALSE(decoded(varints({1, 1ULL << 32, 0, 1ULL << 33})).has_value()) << "too many";
  EXPECT_FALSE(decoded(varints({1, 2, 2 * 0xffffffffULL, 100})).has_value()) << "over its birth";
  EXPECT_FALSE(decoded(varints({1, 1, (1ULL << 33) - 1, 100})).has_value()) << "the last birth";
  EXPECT_FALSE(decoded(varints({1, 0, 0})).has_value()) << "a hole without bytes";
  EXPECT_FALSE(decoded(varints({1, 0, 1ULL << 63})).has_value()) << "a hole over any file";
}

TEST(Recipe, SumOverTheLargestFileFails) {
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(decoded(varints({1, 0, most})).has_value());
  EXPECT_FALSE(decoded(varints({2, 0, most, 1, 0, 1})).has_value());
}

TEST(Recipe, CountBeyondTheBytesFails) {
  EXPECT_FALSE(decoded(varints({1ULL << 60})).has_value());
  EXPECT_FALSE(decoded(varints({3, 0, 1, 0, 1})).has_value());
}

TEST(RecipeObject, RoundTripsAndRefusesOtherKinds) {
  std::mt19937_64 random(9);
  const Recipe recipe = random_recipe(random);
  const std::string bytes = encode_recipe_object(recipe);
  EXPECT_EQ(*decode_recipe_object(bytes), recipe);
  EXPECT_FALSE(decode_recipe_object(bytes + '\0').has_value());
  EXPECT_FALSE(decode_recipe_object("").has_value());
  EXPECT_FALSE(decode_recipe_object(encode_dir_page(LeafPage{})).has_value());
}

TEST(Recipe, RunsThatAWriterJoinsFail) {
  EXPECT_FALSE(decoded(varints({2, 0, 10, 0, 10})).has_value()) << "two holes";
  EXPECT_FALSE(decoded(varints({2, 2, 0, 100, 1, 0, 100})).has_value()) << "ids that go on";
  EXPECT_TRUE(decoded(varints({2, 2, 0, 100, 1, 1, 100})).has_value()) << "ids that go back";
  EXPECT_TRUE(decoded(varints({3, 0, 10, 1, 0, 100, 0, 10})).has_value());
}

TEST(RecipeDecoder, PiecesOfAnySizeGiveTheRecipe) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 50; ++round) {
    const Recipe recipe = random_recipe(random);
    const std::string bytes = encoded(recipe);
    RecipeDecoder decoder(recipe.bytes());
    std::string waiting;
    for (std::size_t at = 0; at <= bytes.size();) {
      const std::size_t n = std::min<std::size_t>(bytes.size() - at, 1 + random() % 40);
      waiting += bytes.substr(at, n);
      at += n;
      const auto used = decoder.take(base::as_bytes(waiting), at == bytes.size());
      ASSERT_TRUE(used);
      waiting.erase(0, *used);
      if (at == bytes.size()) break;
    }
    ASSERT_TRUE(decoder.done());
    EXPECT_EQ(decoder.bytes(), recipe.bytes());
    EXPECT_EQ(decoder.finish(), recipe);
  }
}

TEST(RecipeDecoder, MoreThanTheFileHasFails) {
  const auto takes = [](std::string_view bytes, std::uint64_t file_bytes) {
    RecipeDecoder decoder(file_bytes);
    return decoder.take(base::as_bytes(bytes), true).has_value();
  };
  const std::string bytes = varints({1, 2, 0, 100});
  EXPECT_TRUE(takes(bytes, 100));
  EXPECT_FALSE(takes(bytes, 99));
  EXPECT_FALSE(takes(varints({recipe_runs_max(100) + 1}), 100)) << "runs that are only claimed";
  EXPECT_FALSE(takes(bytes + "x", 100)) << "bytes behind its end";
}

}  // namespace
}  // namespace varve::format
