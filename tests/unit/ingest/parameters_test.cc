// SPDX-License-Identifier: Apache-2.0
#include "ingest/parameters.h"

#include <gtest/gtest.h>

#include <string>

#include "ingest/chunker.h"
#include "support/test_keys.h"

namespace varve::ingest {
namespace {

std::string text_with(auto change) {
  format::Superblock superblock;
  superblock.repository_id = "00112233445566778899aabbccddeeff";
  change(superblock.parameters);
  return format::encode_superblock(superblock);
}

// The check of a new repository and of an existing one agree; only the code of the error differs.
void expect_refused(ErrorCode code, auto change) {
  RepositoryParameters parameters;
  change(parameters);
  const auto checked = check_parameters(parameters);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code(), code);
  const auto read = read_superblock(text_with(change));
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code(),
            code == ErrorCode::kInvalid ? ErrorCode::kCorrupt : ErrorCode::kUnsupported);
  EXPECT_NE(read.error().message().find("varve.repo"), std::string::npos);
  EXPECT_NE(read.error().message().find(checked.error().message()), std::string::npos);
}

TEST(Parameters, DefaultsAreAccepted) {
  EXPECT_TRUE(check_parameters(RepositoryParameters{}).has_value());
  const auto read = read_superblock(text_with([](auto&) {}));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->parameters.chunker, RepositoryParameters().chunker);
}

TEST(Parameters, DefaultSizesOfEveryChunkerAreAccepted) {
  for (const auto& kind : chunker_kinds()) {
    RepositoryParameters parameters;
    parameters.chunker = kind.id;
    EXPECT_TRUE(check_parameters(parameters, true).has_value()) << kind.id;
    const auto keys = varve::test::test_keys();
    EXPECT_TRUE(make_chunker(kind.id, chunk_sizes_of(parameters), keys.get()).has_value())
        << kind.id;
  }
}

TEST(Parameters, KeyedChunkersAreForEncryptedRepositoriesOnly) {
  for (const auto& kind : chunker_kinds()) {
    if (!kind.is_keyed()) continue;
    expect_refused(ErrorCode::kInvalid, [&](auto& p) { p.chunker = kind.id; });
    format::Superblock superblock;
    superblock.repository_id = "00112233445566778899aabbccddeeff";
    superblock.parameters.chunker = kind.id;
    superblock.encryption.emplace();
    const auto read = read_superblock(format::encode_superblock(superblock));
    EXPECT_TRUE(read.has_value()) << read.error().message();
  }
}

TEST(Parameters, ARepositoryHasTheFormOfTheChosenChunkerThatFitsItsKeys) {
  for (const auto& kind : chunker_kinds()) {
    RepositoryParameters parameters;
    parameters.chunker = kind.id;
    const auto keyed = parameters_for(parameters, true);
    ASSERT_TRUE(keyed.has_value()) << kind.id;
    EXPECT_EQ(keyed->chunker, kind.id);
    const auto plain = parameters_for(parameters, false);
    ASSERT_TRUE(plain.has_value()) << kind.id;
    EXPECT_EQ(plain->chunker + "-keyed", kind.keyed_id);
    EXPECT_TRUE(check_parameters(*plain));
  }
}

TEST(Parameters, OddSizesAreRefused) {
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_avg = 8000; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_avg = 8191; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_avg = 2048; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_avg = 32768; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_min = 0; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_min = 192; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_min = 300; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_min = 8192; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_max = 8192; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_max = 65537; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.chunk_bytes_max = 131136; });
}

TEST(Parameters, LevelsOutOfRangeAreRefused) {
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.zstd_level = 0; });
  expect_refused(ErrorCode::kInvalid, [](auto& p) { p.zstd_level = 20; });
}

TEST(Parameters, LevelIsIgnoredWithoutCompression) {
  RepositoryParameters parameters;
  parameters.codec = Codec::kNone;
  parameters.zstd_level = 0;
  EXPECT_TRUE(check_parameters(parameters).has_value());
}

TEST(Parameters, UnknownChunkerIsRefused) {
  expect_refused(ErrorCode::kUnsupported, [](auto& p) { p.chunker = "rabin"; });
}

}  // namespace
}  // namespace varve::ingest
