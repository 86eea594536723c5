// SPDX-License-Identifier: Apache-2.0
#include "fs/node_id.h"

#include <gtest/gtest.h>

#include <set>

namespace varve::fs {
namespace {

TEST(NodeId, UnpackGivesWhatWasPacked) {
  for (const std::uint32_t slot : {0U, 1U, 77U, (1U << 30) - 2}) {
    for (const bool open : {false, true}) {
      for (const std::uint64_t low : {std::uint64_t{0}, std::uint64_t{1}, kLowMax}) {
        const NodeId id{.slot = slot, .open = open, .low = low};
        EXPECT_EQ(unpack(pack(id)), id);
        EXPECT_NE(pack(id), kRootNodeId);
      }
    }
  }
}

TEST(StIno, NamesOfOneLinkedFileShareIt) {
  const SeriesId series{3};
  const VersionNumber number{9};
  EXPECT_EQ(st_ino_of_sealed(series, number, 5, 1234), st_ino_of_sealed(series, number, 6, 1234));
  EXPECT_NE(st_ino_of_sealed(series, number, 5, 1234), st_ino_of_sealed(series, number, 5, 1235));
  EXPECT_NE(st_ino_of_sealed(series, number, 5, 0), st_ino_of_sealed(series, number, 6, 0));
}

TEST(StIno, DiffersBetweenVersionsSeriesAndStates) {
  std::set<std::uint64_t> seen = {kRootStIno};
  for (std::uint32_t series = 1; series <= 3; ++series) {
    EXPECT_TRUE(seen.insert(st_ino_of_series(SeriesId{series})).second);
    EXPECT_TRUE(seen.insert(st_ino_of_latest(SeriesId{series})).second);
    for (std::uint32_t number = 1; number <= 3; ++number) {
      for (std::uint64_t file = 1; file <= 3; ++file) {
        const SeriesId s{series};
        const VersionNumber n{number};
        EXPECT_TRUE(seen.insert(st_ino_of_open(s, n, file)).second);
        EXPECT_TRUE(seen.insert(st_ino_of_sealed(s, n, file, 0)).second);
        EXPECT_TRUE(seen.insert(st_ino_of_sealed(s, n, file, file)).second);
      }
    }
  }
}

}  // namespace
}  // namespace varve::fs
