// SPDX-License-Identifier: Apache-2.0
#include "control/mount_table.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "control/mount_holder.h"

namespace varve::control {
namespace {

constexpr std::string_view kTable =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "not a line of a mount table\n"
    "40 22 0:41 / /mnt/with\\040space rw - fuse.varve /srv/back\\134up rw\n"
    "41 22 0:42 / /mnt/v rw,nosuid shared:7 master:2 - fuse.varve /srv/repo rw,user_id=0\n"
    "42 41 0:43 / /mnt/v/s/x rw - tmpfs tmpfs rw\n"
    "43 22 0:42 /s/one /mnt/bound rw - fuse.varve /srv/repo rw,user_id=1000,group_id=0\n";

std::string mount_point_of(std::string_view table, std::string_view path) {
  const auto entries = parse_mount_table(table);
  const MountEntry* found = find_by_path(entries, path);
  return found == nullptr ? "none" : found->mount_point;
}

TEST(MountTable, OctalEscapesAndOptionalFieldsAreUnderstood) {
  const auto table = parse_mount_table(kTable);
  ASSERT_EQ(table.size(), 5U);
  EXPECT_EQ(table[1], (MountEntry{40, makedev(0, 41), "/", "/mnt/with space", "fuse.varve",
                                  "/srv/back\\up", std::nullopt}));
  EXPECT_EQ(table[2],
            (MountEntry{41, makedev(0, 42), "/", "/mnt/v", "fuse.varve", "/srv/repo", 0}));
  EXPECT_EQ(table[4].user, 1000U);
  EXPECT_EQ(table[4].root, "/s/one");
}

TEST(MountTable, UserIsTheKernelsOptionAlone) {
  const auto table = parse_mount_table(
      "1 1 0:1 / /a rw - fuse.varve user_id=0 rw,xuser_id=0,user_id=7\n"
      "2 1 0:2 / /b rw,user_id=0 - fuse.varve source rw\n");
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0].user, 7U);
  EXPECT_FALSE(table[1].user);
}

TEST(MountTable, PathInsideGivesTheRestBelowTheMountPoint) {
  const auto table = parse_mount_table(kTable);
  const MountEntry* found = find_by_path(table, "/mnt/v/laptop/monday");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->mount_point, "/mnt/v");
  EXPECT_EQ(path_in_file_system(*found, "/mnt/v/laptop/monday"), "laptop/monday");
  EXPECT_EQ(path_in_file_system(*found, "/mnt/v"), "");
}

TEST(MountTable, PathInABoundMountGoesOnFromWhatIsBound) {
  const auto table = parse_mount_table(kTable);
  const MountEntry* found = find_by_path(table, "/mnt/bound/dir");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(path_in_file_system(*found, "/mnt/bound/dir"), "s/one/dir");
  EXPECT_EQ(path_in_file_system(*found, "/mnt/bound"), "s/one");
}

TEST(MountTable, SiblingWithTheSamePrefixIsOutside) {
  EXPECT_EQ(mount_point_of(kTable, "/mnt/v2/laptop"), "/");
  EXPECT_EQ(mount_point_of(kTable, "/mnt"), "/");
}

TEST(MountTable, OtherFileSystemMountedInsideIsOutside) {
  EXPECT_EQ(mount_point_of(kTable, "/mnt/v/s/x/file"), "/mnt/v/s/x");
}

TEST(MountTable, LastOfStackedMountsCounts) {
  const std::string stacked = std::string(kTable) + "50 41 0:50 / /mnt/v rw - tmpfs tmpfs rw\n";
  const auto table = parse_mount_table(stacked);
  const MountEntry* found = find_by_path(table, "/mnt/v");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->is_fuse());
}

TEST(MountTable, AnotherFileSystemMayHaveTheNumberOfOneThatEnded) {
  const auto of = [](const std::string& line) { return parse_mount_table(line).front(); };
  const auto mount = of("40 1 0:50 / /mnt/v rw - fuse.varve /backup/repo rw,user_id=0\n");
  EXPECT_TRUE(is_same_file_system(
      of("70 9 0:50 /s /elsewhere rw - fuse.varve /backup/repo rw,user_id=0\n"), mount));
  EXPECT_FALSE(is_same_file_system(
      of("41 1 0:50 / /mnt/w rw - fuse.varve /backup/other rw,user_id=0\n"), mount));
  EXPECT_FALSE(is_same_file_system(of("41 1 0:50 / /mnt/w rw - tmpfs tmpfs rw\n"), mount));
}

}  // namespace
}  // namespace varve::control
