// SPDX-License-Identifier: Apache-2.0
#include "catalog/chunk_references.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "catalog/series_catalog.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::catalog {
namespace {

using test::must;

constexpr SeriesId kReferringSeries{3};
using References = std::map<std::uint64_t, std::int64_t>;

References references_of(const std::vector<ReferenceCounts::Piece>& pieces) {
  References all;
  for (const auto& piece : pieces) {
    EXPECT_LT(piece.first, piece.end);
    for (auto id = piece.first; id != piece.end; ++id) all[id] = piece.references;
  }
  return all;
}

TEST(ReferenceCounts, RunsThatFollowEachOtherAreOnePiece) {
  ReferenceCounts counts;
  counts.add({ChunkId{10}, 5}, 1);
  counts.add({ChunkId{15}, 5}, 1);
  const auto pieces = counts.pieces();
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].first, 10U);
  EXPECT_EQ(pieces[0].end, 20U);
}

TEST(ReferenceCounts, OppositeChangesCancel) {
  ReferenceCounts counts;
  counts.add({ChunkId{10}, 5}, -1);
  counts.add({ChunkId{10}, 5}, 1);
  EXPECT_TRUE(counts.pieces().empty());
}

TEST(ReferenceCounts, APieceEndsWithItsBirth) {
  ReferenceCounts counts;
  counts.add({ChunkId::make(VersionNumber{1}, 0xffffffff), 1}, 1);
  counts.add({ChunkId::make(VersionNumber{2}, 0), 1}, 1);
  EXPECT_EQ(counts.pieces().size(), 2U);
}

class VersionReferencesTest : public testing::Test {
 protected:
  VersionReferencesTest() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.map_bytes = std::size_t{64} << 20;
    env_.emplace(must(meta::Env::open(directory_.path(), options)));
  }
  void put(const VersionReferences& references, std::uint32_t number) {
    auto txn = must(meta::WriteTxn::begin(*env_));
    must(references.put(txn, kReferringSeries, VersionNumber{number}));
    must(put_version_chunks(txn, kReferringSeries, VersionNumber{number}, references.chunks()));
    must(txn.commit());
  }
  const test::TempDirectory directory_;
  std::optional<meta::Env> env_;
};

// Files are runs of ids: some are added and removed in each version.
TEST_F(VersionReferencesTest, RandomChangesGiveTheCountsOfAllFiles) {
  constexpr std::uint32_t kVersions = 60;
  std::mt19937_64 random(5);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::vector<base::IdRun> files;
  for (std::uint32_t version = 1; version <= kVersions; ++version) {
    ReferenceCounts changes;
    for (auto n = below(30); n > 0; --n) {
      const bool removes = !files.empty() && below(2) == 0;
      if (removes) {
        const auto at = below(files.size());
        changes.add(files[at], -1);
        files.erase(files.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      const auto birth = VersionNumber{static_cast<std::uint32_t>(1 + below(3))};
      const auto count = static_cast<std::uint32_t>(1 + below(below(9) == 0 ? 9000 : 40));
      files.push_back({ChunkId::make(birth, static_cast<std::uint32_t>(below(20000))), count});
      changes.add(files.back(), 1);
    }
    ReferenceCounts all;
    for (const auto& file : files) all.add(file, 1);
    const auto counted = references_of(all.pieces());
    if (version == 1) {
      put(VersionReferences::of_all(std::move(all)), version);
    } else {
      const auto txn = must(meta::ReadTxn::begin(*env_));
      const auto made = must(VersionReferences::of_changes(
          txn, kReferringSeries, VersionNumber{version - 1}, std::move(changes)));
      put(made, version);
    }
    const auto txn = must(meta::ReadTxn::begin(*env_));
    References stored;
    const auto chunks = must(version_chunks(txn, kReferringSeries, VersionNumber{version}));
    for (const auto& run : chunks.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) stored[run.first.plus(i).value] = 1;
    }
    for (const auto& [id, references] :
         references_of(must(stored_references(txn, kReferringSeries)))) {
      EXPECT_GT(references, 1);
      stored[id] = references;
    }
    ASSERT_EQ(stored.size(), counted.size()) << "version " << version;
    for (const auto& [id, references] : counted) {
      ASSERT_EQ(stored[id], references) << "chunk " << id << " in version " << version;
    }
  }
}

TEST_F(VersionReferencesTest, AReferenceThatTheBaseLacksIsDamage) {
  put(VersionReferences::of_all({}), 1);
  ReferenceCounts changes;
  changes.add({ChunkId{10}, 5}, -1);
  const auto txn = must(meta::ReadTxn::begin(*env_));
  const auto made =
      VersionReferences::of_changes(txn, kReferringSeries, VersionNumber{1}, std::move(changes));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kCorrupt);
}

TEST_F(VersionReferencesTest, SeriesKeepTheirOwnRecords) {
  ReferenceCounts counts;
  counts.add({ChunkId{10}, 5}, 2);
  const auto references = VersionReferences::of_all(std::move(counts));
  put(references, 1);
  auto txn = must(meta::WriteTxn::begin(*env_));
  must(references.put(txn, SeriesId{4}, VersionNumber{1}));
  must(erase_references(txn, kReferringSeries));
  EXPECT_FALSE(has_references(txn, kReferringSeries, VersionNumber{1}));
  EXPECT_TRUE(has_references(txn, SeriesId{4}, VersionNumber{1}));
  EXPECT_EQ(must(stored_references(txn, SeriesId{4})).size(), 1U);
}

}  // namespace
}  // namespace varve::catalog
