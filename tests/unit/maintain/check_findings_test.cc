// SPDX-License-Identifier: Apache-2.0
#include "maintain/check_findings.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/system_error.h"
#include "io/memory_file_system.h"
#include "maintain/owners.h"

namespace varve::maintain {
namespace {

class CheckFindingsTest : public testing::Test {
 protected:
  io::WatchedFileSystem files_{io::make_memory_file_system()};
  CheckFindings findings_{files_};
};

TEST_F(CheckFindingsTest, ReportsDamagesAndNotesInOrder) {
  findings_.damage("catalog", Error(ErrorCode::kCorrupt, "a bad page"), " (repair it)");
  findings_.damage("staging", "lost", {"home/today"});
  findings_.note("other", "unknown file");
  const auto& report = findings_.report();
  ASSERT_EQ(report.damages.size(), 2U);
  EXPECT_EQ(report.damages[0].what, "a bad page (repair it)");
  EXPECT_EQ(report.damages[1].affected, std::vector<std::string>{"home/today"});
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0].where, "other");
  EXPECT_TRUE(files_.conclusive());
}

TEST_F(CheckFindingsTest, LackOfDescriptorsLeavesNoVerdict) {
  findings_.damage("segment", base::system_error("cannot open the segment", EMFILE));
  EXPECT_FALSE(files_.conclusive());
}

TEST_F(CheckFindingsTest, LostChunksAreCollectedByStore) {
  findings_.add_lost(SeriesId{2}, base::IdRuns::from({{ChunkId{5}, 2}}));
  findings_.add_lost(SeriesId{2}, base::IdRuns::from({{ChunkId{6}, 3}}));
  findings_.add_lost(SeriesId{3}, base::IdRuns());
  findings_.add_lost(kPoolOwner, base::IdRuns::from({{ChunkId{9}, 1}}));
  const auto lost = findings_.lost_chunks();
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost.at(StoreId{2}), base::IdRuns::from({{ChunkId{5}, 4}}));
  EXPECT_EQ(lost.at(kPoolStore).size(), 1U);
}

}  // namespace
}  // namespace varve::maintain
