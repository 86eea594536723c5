// SPDX-License-Identifier: Apache-2.0
// Parameters of a new repository: create() refuses every value that open() would refuse.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_repository.h"
#include "varve/choices.h"

namespace varve::test {
namespace {

struct Sizes {
  std::uint32_t min = 0;
  std::uint32_t avg = 0;
  std::uint32_t max = 0;
};

RepositoryParameters with_sizes(const std::string& chunker, const Sizes& sizes) {
  RepositoryParameters parameters;
  parameters.chunker = chunker;
  parameters.chunk_bytes_min = sizes.min;
  parameters.chunk_bytes_avg = sizes.avg;
  parameters.chunk_bytes_max = sizes.max;
  return parameters;
}

std::string text_of(const Sizes& sizes) {
  return std::to_string(sizes.min) + ":" + std::to_string(sizes.avg) + ":" +
         std::to_string(sizes.max);
}

// Values around each bound.
std::vector<Sizes> odd_and_even_sizes() {
  std::vector<Sizes> all;
  for (const std::uint32_t avg : {0U, 1024U, 2048U, 4096U, 8000U, 8192U, 16384U, 32768U}) {
    for (const std::uint32_t min : {0U, 1U, 64U, 255U, 256U, 300U, 2048U, 2050U, 4095U, 8192U}) {
      for (const std::uint32_t max : {4096U, 8256U, 32768U, 65536U, 65537U, 131072U, 131136U}) {
        all.push_back({min, avg, max});
      }
    }
  }
  return all;
}

TEST(RepositoryParameters, EveryCreatedRepositoryOpens) {
  const TempDirectory directory;
  int created = 0;
  int refused = 0;
  for (const auto& [chunker, help] : chunker_choices()) {
    for (const Sizes& sizes : odd_and_even_sizes()) {
      const std::string path = directory.path() + "/" + chunker + text_of(sizes);
      const auto made = Repository::create(path, with_sizes(chunker, sizes));
      if (!made) {
        ++refused;
        EXPECT_EQ(made.error().code(), ErrorCode::kInvalid) << text_of(sizes);
        EXPECT_FALSE(std::filesystem::exists(path)) << text_of(sizes);
        continue;
      }
      ++created;
      const auto opened = Repository::open(path, quiet_options());
      EXPECT_TRUE(opened.has_value())
          << chunker << " " << text_of(sizes) << ": " << opened.error().message();
      std::filesystem::remove_all(path);
    }
  }
  // Of each chunker: min 256 with three maximums per average of 4096, 8192 and 16384, and so on.
  EXPECT_GT(created, 20);
  EXPECT_GT(refused, 200);
}

TEST(RepositoryParameters, OddMinimumIsRefusedWithTheAllowedSizes) {
  const TempDirectory directory;
  const auto made =
      Repository::create(directory.path() + "/r", with_sizes("gear16", {300, 8192, 65536}));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), ErrorCode::kInvalid);
  const std::string& message = made.error().message();
  for (const char* part : {"300:8192:65536", "multiples of 64", "256", "4096", "16384", "131072"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

TEST(RepositoryParameters, UnknownChunkerIsRefusedWithTheKnownOnes) {
  const TempDirectory directory;
  const auto made =
      Repository::create(directory.path() + "/r", with_sizes("rabin", {2048, 8192, 65536}));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), ErrorCode::kUnsupported);
  const std::string& message = made.error().message();
  EXPECT_NE(message.find("rabin"), std::string::npos) << message;
  for (const auto& [name, help] : chunker_choices()) {
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TEST(RepositoryParameters, EveryChosenCompressionIsValidAndGivesItsTextBack) {
  ASSERT_FALSE(compression_choices().empty());
  for (const auto& [name, help] : compression_choices()) {
    EXPECT_FALSE(help.empty()) << name;
    RepositoryParameters parameters;
    ASSERT_TRUE(choose_compression(name, parameters)) << name;
    EXPECT_TRUE(check_parameters(parameters)) << name;
    const std::string text = compression_text(parameters);
    RepositoryParameters same;
    ASSERT_TRUE(choose_compression(text, same)) << text;
    EXPECT_EQ(same.codec, parameters.codec);
    EXPECT_EQ(same.zstd_level, parameters.zstd_level);
  }
  RepositoryParameters parameters;
  for (const char* bad : {"", "zstd:", "zstd:0", "zstd:20", "zstd:x", "none:1", "unheard-of"}) {
    const auto chosen = choose_compression(bad, parameters);
    ASSERT_FALSE(chosen.has_value()) << bad;
    EXPECT_EQ(chosen.error().code(), ErrorCode::kInvalid) << bad;
  }
  EXPECT_EQ(compression_text(parameters), compression_text(RepositoryParameters()))
      << "a refused text changes nothing";
}

TEST(RepositoryParameters, LevelsOutOfRangeAreRefused) {
  const TempDirectory directory;
  for (const int level : {-1, 0, 20}) {
    RepositoryParameters parameters;
    parameters.zstd_level = level;
    const auto made = Repository::create(directory.path() + "/r", parameters);
    ASSERT_FALSE(made.has_value()) << level;
    EXPECT_EQ(made.error().code(), ErrorCode::kInvalid);
    EXPECT_NE(made.error().message().find("1 to 19"), std::string::npos) << made.error().message();
  }
}

}  // namespace
}  // namespace varve::test
