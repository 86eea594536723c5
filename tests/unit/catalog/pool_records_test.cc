// SPDX-License-Identifier: Apache-2.0
// The records of the pool: round trips, damaged bytes, births, and the containers of a set of
// chunks.
#include "catalog/pool_records.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/coding.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "catalog_fixture.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::catalog {
namespace {

using varve::test::code_of;
using varve::test::must;

ContainerNumber container(std::uint32_t index) {
  return static_cast<ContainerNumber>(kPoolBit + index);
}
ChunkId chunk(std::uint32_t birth, std::uint32_t ordinal) {
  return ChunkId::make(static_cast<VersionNumber>(kPoolBit + birth), ordinal);
}

using PoolRecordsTest = CatalogTest;

TEST_F(PoolRecordsTest, ChosenIndexRoundTripsAndUnknownOnesAreRefused) {
  const auto found = [this] { return find_pool_index(must(meta::ReadTxn::begin(catalog_))); };
  EXPECT_EQ(must(found()), PoolIndexChoice());
  for (const auto& choice : {PoolIndexChoice{PoolIndexKind::kZeroChunk, 0},
                             PoolIndexChoice{PoolIndexKind::kZeroChunk, 10},
                             PoolIndexChoice{PoolIndexKind::kStream, 0}, PoolIndexChoice()}) {
    commit([&](meta::WriteTxn& txn) { return put_pool_index(txn, choice); });
    EXPECT_EQ(must(found()), choice);
  }
  const auto put = [this](std::string_view value) {
    commit([&](meta::WriteTxn& txn) {
      return txn.put(meta::catalog::kSettings, kPoolIndexSetting, value);
    });
  };
  for (const auto* const unknown : {"\x02\x01", "\x01\x05", "\x01\x0b"}) {
    put(unknown);
    EXPECT_EQ(code_of(found()), ErrorCode::kUnsupported);
  }
  for (const auto* const damaged : {"", "\x01", "\x01\x06\x01"}) {
    put(damaged);
    EXPECT_EQ(code_of(found()), ErrorCode::kCorrupt);
  }
}

TEST(PoolUseRecord, RoundTripsAnyList) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<PoolUse> uses;
    std::uint64_t next = kPoolBit;
    for (auto n = random() % 20; n > 0; --n) {
      next += random() % 5 == 0 ? random() % 100'000'000 : random() % 3;
      if (next >= 0xffffffffU) break;
      uses.push_back({static_cast<ContainerNumber>(next++), random() >> (random() % 64)});
    }
    EXPECT_EQ(must(decode_pool_use(encode_pool_use(uses))), uses);
  }
  const std::vector<PoolUse> ends{{container(0), 0}, {static_cast<ContainerNumber>(~0U), ~0ULL}};
  EXPECT_EQ(must(decode_pool_use(encode_pool_use(ends))), ends);
}

// Any other bytes are refused, or they are a list in ascending order that encodes to these bytes.
TEST(PoolUseRecord, DamagedBytesAreRefusedOrMeanAList) {
  const auto good = encode_pool_use({{container(3), 5000}, {container(4), 1}, {container(900), 7}});
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_EQ(code_of(decode_pool_use(good.substr(0, n))), ErrorCode::kCorrupt) << n;
  }
  EXPECT_EQ(code_of(decode_pool_use(good + '\0')), ErrorCode::kCorrupt);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      auto bad = good;
      bad[at] = static_cast<char>(value);
      const auto decoded = decode_pool_use(bad);
      if (!decoded) {
        EXPECT_EQ(decoded.error().code(), ErrorCode::kCorrupt);
        continue;
      }
      for (std::size_t i = 0; i < decoded->size(); ++i) {
        EXPECT_TRUE(is_pool((*decoded)[i].container));
        EXPECT_TRUE(i == 0 || (*decoded)[i - 1].container < (*decoded)[i].container);
      }
    }
  }
  std::string huge;
  base::ByteWriter w(huge);
  w.varint(~0ULL);
  EXPECT_EQ(code_of(decode_pool_use(huge)), ErrorCode::kCorrupt);
  // A container whose number exceeds 32 bits.
  std::string wide;
  base::ByteWriter v(wide);
  v.varint(2);
  v.varint(0x7fffffff);
  v.varint(1);
  v.varint(0);
  v.varint(1);
  EXPECT_EQ(code_of(decode_pool_use(wide)), ErrorCode::kCorrupt);
}

TEST(PoolUsersRecord, NoUsersAndTooManyAreDamage) {
  const auto encoded = [](std::uint64_t users) {
    std::string out;
    base::ByteWriter w(out);
    w.varint(users);
    return out;
  };
  EXPECT_EQ(must(decode_pool_users(encoded(1))), 1U);
  EXPECT_EQ(must(decode_pool_users(encoded(0xffffffffU))), 0xffffffffU);
  for (const auto users : {std::uint64_t{0}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    EXPECT_EQ(code_of(decode_pool_users(encoded(users))), ErrorCode::kCorrupt) << users;
  }
  EXPECT_EQ(code_of(decode_pool_users("")), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(decode_pool_users(encoded(300) + "x")), ErrorCode::kCorrupt);
}

TEST_F(PoolRecordsTest, RecordsComeBackUntilTheyAreEmpty) {
  const SeriesId series{3};
  const VersionNumber number{9};
  const std::vector<PoolUse> uses{{container(1), 10}, {container(5), 20}};
  commit([&](meta::WriteTxn& txn) { return put_pool_use(txn, series, number, uses); });
  commit([&](meta::WriteTxn& txn) { return put_pool_users(txn, container(5), 4); });
  {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    EXPECT_EQ(must(find_pool_use(txn, series, number)), uses);
    EXPECT_TRUE(must(find_pool_use(txn, series, VersionNumber{8})).empty());
    EXPECT_EQ(must(find_pool_users(txn, container(5))), 4U);
    EXPECT_EQ(must(find_pool_users(txn, container(4))), 0U);
    int seen = 0;
    must(for_each_pool_use(
        txn, [&](SeriesId s, VersionNumber v, const std::vector<PoolUse>& found) -> Result<bool> {
          EXPECT_EQ(s, series);
          EXPECT_EQ(v, number);
          EXPECT_EQ(found, uses);
          ++seen;
          return true;
        }));
    EXPECT_EQ(seen, 1);
  }
  commit([&](meta::WriteTxn& txn) { return put_pool_use(txn, series, number, {}); });
  commit([&](meta::WriteTxn& txn) { return put_pool_users(txn, container(5), 0); });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  EXPECT_FALSE(must(txn.get(meta::catalog::kPoolUse, meta::version_key(series, number))));
  EXPECT_FALSE(must(txn.get(meta::catalog::kPoolUsers, meta::pool_users_key(container(5)))));
}

TEST_F(PoolRecordsTest, CountsOfRewritingGoWithTheVersion) {
  const SeriesId series{3};
  const RewriteCounts counts{300, 1ULL << 40, 20, 150000, 16, 70000, 12};
  for (const std::uint32_t number : {9U, 10U}) {
    commit([&](meta::WriteTxn& txn) {
      return put_rewrite_counts(txn, series, VersionNumber{number}, counts);
    });
  }
  commit([&](meta::WriteTxn& txn) { return erase_version(txn, series, VersionNumber{9}); });
  {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    EXPECT_EQ(must(find_rewrite_counts(txn, series, VersionNumber{9})), std::nullopt);
    EXPECT_EQ(must(find_rewrite_counts(txn, series, VersionNumber{10})), counts);
    int seen = 0;
    must(for_each_rewrite_counts(
        txn, [&](SeriesId s, VersionNumber v, const RewriteCounts& found) -> Result<bool> {
          ++seen;
          EXPECT_TRUE(s == series && v == VersionNumber{10} && found == counts);
          return true;
        }));
    EXPECT_EQ(seen, 1);
  }
  commit([&](meta::WriteTxn& txn) {
    return txn.put(meta::catalog::kRewriteCounts, meta::version_key(series, VersionNumber{10}),
                   "damaged");
  });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  EXPECT_EQ(code_of(find_rewrite_counts(txn, series, VersionNumber{10})), ErrorCode::kCorrupt);
  const auto visited = for_each_rewrite_counts(
      txn, [](SeriesId, VersionNumber, const RewriteCounts&) -> Result<bool> { return true; });
  EXPECT_EQ(visited.error().code(), ErrorCode::kCorrupt);
}

TEST_F(PoolRecordsTest, DamagedRecordsAreFound) {
  commit([&](meta::WriteTxn& txn) {
    return txn.put(meta::catalog::kPoolUse, meta::version_key(SeriesId{1}, VersionNumber{1}),
                   "\x05");
  });
  commit([&](meta::WriteTxn& txn) {
    return txn.put(meta::catalog::kPoolUsers, meta::pool_users_key(container(1)), "");
  });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  EXPECT_EQ(code_of(find_pool_use(txn, SeriesId{1}, VersionNumber{1})), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(find_pool_users(txn, container(1))), ErrorCode::kCorrupt);
  const auto uses = for_each_pool_use(
      txn,
      [](SeriesId, VersionNumber, const std::vector<PoolUse>&) -> Result<bool> { return true; });
  EXPECT_EQ(uses.error().code(), ErrorCode::kCorrupt);
  const auto users =
      for_each_pool_users(txn, [](ContainerNumber, std::uint32_t) -> Result<bool> { return true; });
  EXPECT_EQ(users.error().code(), ErrorCode::kCorrupt);
}

TEST_F(PoolRecordsTest, NoBirthIsGivenTwice) {
  std::set<VersionNumber> given;
  for (int i = 0; i < 5; ++i) {
    commit([&](meta::WriteTxn& txn) -> Result<void> {
      VARVE_TRY_ASSIGN(const auto birth, take_pool_birth(txn));
      EXPECT_TRUE(is_pool(ChunkId::make(birth, 0)));
      EXPECT_TRUE(given.insert(birth).second);
      return {};
    });
  }
  const auto above = static_cast<VersionNumber>(kPoolBit + 700);
  commit([&](meta::WriteTxn& txn) { return raise_pool_birth(txn, above); });
  commit([&](meta::WriteTxn& txn) { return raise_pool_birth(txn, *given.begin()); });
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    VARVE_TRY_ASSIGN(const auto birth, take_pool_birth(txn));
    EXPECT_GT(birth, above);
    return {};
  });
  auto txn = must(meta::WriteTxn::begin(catalog_));
  must(raise_pool_birth(txn, static_cast<VersionNumber>(0xffffffffU)));
  EXPECT_EQ(code_of(take_pool_birth(txn)), ErrorCode::kTooLarge);
}

TEST_F(PoolRecordsTest, SetIsCutWhereThePoolBegins) {
  const auto own = ChunkId::make(VersionNumber{7}, 3);
  const auto last = ChunkId::make(static_cast<VersionNumber>(kPoolBit - 1), 0);
  const auto both = base::IdRuns::from({{own, 5}, {last, 1}, {chunk(0, 0), 2}, {chunk(4, 9), 3}});
  EXPECT_EQ(own_part(both), base::IdRuns::from({{own, 5}, {last, 1}}));
  EXPECT_EQ(pool_part(both), base::IdRuns::from({{chunk(0, 0), 2}, {chunk(4, 9), 3}}));
  EXPECT_EQ(own_part(own_part(both)), own_part(both));
  EXPECT_EQ(pool_part(own_part(both)).size(), 0U);
  EXPECT_EQ(own_part(pool_part(both)).size(), 0U);
  EXPECT_EQ(pool_part(base::IdRuns()).size(), 0U);
}

TEST_F(PoolRecordsTest, ContainersOfChunksHaveTheirBytes) {
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    VARVE_TRY(put_location(txn, kPoolStore, {chunk(0, 0), 4, 4000, container(0), 0}));
    VARVE_TRY(put_location(txn, kPoolStore, {chunk(0, 4), 2, 900, container(1), 0}));
    return put_location(txn, kPoolStore, {chunk(1, 0), 1, 70, container(2), 0});
  });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  const auto used = [&](std::vector<base::IdRun> runs) {
    return must(pool_use_of(txn, base::IdRuns::from(std::move(runs))));
  };
  using Uses = std::vector<PoolUse>;
  EXPECT_EQ(used({{chunk(0, 0), 6}}), (Uses{{container(0), 4000}, {container(1), 900}}));
  EXPECT_EQ(used({{chunk(0, 1), 1}, {chunk(0, 3), 2}}),
            (Uses{{container(0), 2000}, {container(1), 450}}));
  EXPECT_EQ(used({{chunk(1, 0), 1}, {ChunkId::make(VersionNumber{1}, 0), 5}}),
            (Uses{{container(2), 70}}));
  EXPECT_TRUE(used({{chunk(2, 0), 1}}).empty());
  EXPECT_TRUE(used({}).empty());
}

}  // namespace
}  // namespace varve::catalog
