// SPDX-License-Identifier: Apache-2.0
#include "maintain/pool_claims.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace varve::maintain {
namespace {

constexpr VersionNumber pool_birth(std::uint32_t number) {
  return static_cast<VersionNumber>(kPoolBit | number);
}

base::IdRuns runs_of(VersionNumber birth, std::uint32_t first, std::uint32_t count) {
  return base::IdRuns::from({{ChunkId::make(birth, first), count}});
}

TEST(PoolClaims, OnlyChunksOfThePoolAreWanted) {
  PoolClaims claims;
  const auto own = runs_of(VersionNumber{4}, 0, 10);
  const auto shared = runs_of(pool_birth(3), 5, 2);
  claims.add({{VersionNumber{4}, own.unite(shared)}});
  EXPECT_EQ(claims.wanted(), shared);
  EXPECT_EQ(claims.last_birth(), pool_birth(3));
  const auto targets = runs_of(pool_birth(1), 7, 1);
  claims.add(targets);
  EXPECT_EQ(claims.wanted(), shared.unite(targets));
  EXPECT_EQ(claims.last_birth(), pool_birth(3));
}

TEST(PoolClaims, HighestBirthCountsWhereverItIsNamed) {
  PoolClaims claims;
  EXPECT_FALSE(claims.has_births());
  EXPECT_EQ(claims.last_birth(), pool_birth(0));
  claims.note_births("damaged");
  std::string encoded;
  runs_of(VersionNumber{9}, 0, 1).encode(encoded);
  claims.note_births(encoded);
  EXPECT_FALSE(claims.has_births()) << "the series' own chunks";
  encoded.clear();
  runs_of(pool_birth(6), 0, 1).encode(encoded);
  claims.note_births(encoded);
  claims.note_birth(pool_birth(2));
  EXPECT_TRUE(claims.has_births());
  EXPECT_EQ(claims.last_birth(), pool_birth(6));
}

TEST(PoolClaims, IncompleteClaimsSkipBirths) {
  PoolClaims claims;
  claims.note_birth(pool_birth(6));
  EXPECT_TRUE(claims.are_complete());
  claims.set_incomplete();
  EXPECT_FALSE(claims.are_complete());
  EXPECT_EQ(claims.last_birth(), pool_birth(6 + 65536));
  claims.note_birth(static_cast<VersionNumber>(UINT32_MAX - 1));
  EXPECT_EQ(claims.last_birth(), static_cast<VersionNumber>(UINT32_MAX));
}

}  // namespace
}  // namespace varve::maintain
