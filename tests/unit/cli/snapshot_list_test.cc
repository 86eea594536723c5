// SPDX-License-Identifier: Apache-2.0
#include "cli/snapshot_list.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>

#include "support/temp_repository.h"

namespace varve::cli {
namespace {

namespace fs = std::filesystem;

class SnapshotListTest : public testing::Test {
 protected:
  SnapshotListTest() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  void add(const std::string& name, std::int64_t mtime) const {
    const std::string path = folder_.path() + "/" + name;
    fs::create_directory(path);
    const struct timespec times[2] = {{mtime, 0}, {mtime, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  const test::TempDirectory folder_;
};

TEST_F(SnapshotListTest, DatesInNamesAreRead) {
  const struct {
    const char* name;
    std::int64_t seconds;  // 0: no date.
  } cases[] = {{"2024-02-29", 1709164800},
               {"2024-02-29-123015", 1709209815},
               {"2024-02-29_12:30", 1709209800},
               {"20240229T123015", 1709209815},
               {"2024.02.29", 1709164800},
               {"backup-2024-02-29T12-30-15Z", 1709209815},
               {"2023-02-29", 0},
               {"2024-13-01", 0},
               {"2024-02", 0},
               {"2024-02-29x", 0},
               {"2024-02-29-1230-old", 0},
               {"alpha.0", 0},
               {"", 0},
               {"99999999999999999999", 0}};
  for (const auto& one : cases) {
    const auto time = time_in_name(one.name);
    EXPECT_EQ(time ? time->seconds : 0, one.seconds) << one.name;
  }
}

TEST_F(SnapshotListTest, SnapshotsAreInTheOrderOfTheirTimes) {
  add("alpha.0", 1709209815);
  add("alpha.1", 1709164800);
  add("2024-02-29-060000", 1);
  add("2024-03-01.inProgress", 1);
  add(".sync", 1);
  fs::create_directory_symlink("alpha.0", folder_.path() + "/latest");
  const auto list = list_snapshots(folder_.path());
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->snapshots.size(), 3U);
  EXPECT_EQ(list->snapshots[0].directory, "alpha.1");
  EXPECT_EQ(list->snapshots[0].version, "2024-02-29T000000Z");
  EXPECT_EQ(list->snapshots[1].version, "2024-02-29-060000");
  EXPECT_EQ(list->snapshots[2].version, "2024-02-29T123015Z");
  EXPECT_EQ(list->left_out.size(), 2U);
}

TEST_F(SnapshotListTest, TwoSnapshotsOfOneTimeAreRefused) {
  add("alpha.0", 1709209815);
  add("beta.0", 1709209815);
  const auto list = list_snapshots(folder_.path());
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), ErrorCode::kInvalid);
  EXPECT_FALSE(list_snapshots(folder_.path() + "/none"));
}

}  // namespace
}  // namespace varve::cli
