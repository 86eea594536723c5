// SPDX-License-Identifier: Apache-2.0
#include "control/mount_table.h"

#include <gtest/gtest.h>

namespace varve::control {
namespace {

constexpr std::string_view kTable =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "not a line of a mount table\n"
    "40 22 0:41 / /mnt/with\\040space rw - fuse.varve /srv/back\\134up rw\n"
    "41 22 0:42 / /mnt/v rw,nosuid shared:7 master:2 - fuse.varve /srv/repo rw,user_id=0\n"
    "42 41 0:43 / /mnt/v/s/x rw - tmpfs tmpfs rw\n";

TEST(MountTable, OctalEscapesAndOptionalFieldsAreUnderstood) {
  const auto table = parse_mount_table(kTable);
  ASSERT_EQ(table.size(), 4U);
  EXPECT_EQ(table[1], (MountEntry{"/mnt/with space", "fuse.varve", "/srv/back\\up"}));
  EXPECT_EQ(table[2], (MountEntry{"/mnt/v", "fuse.varve", "/srv/repo"}));
}

TEST(MountTable, PathInsideGivesTheRestBelowTheMountPoint) {
  const auto found = find_mount_in(parse_mount_table(kTable), "/mnt/v/laptop/monday");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mount_point, "/mnt/v");
  EXPECT_EQ(found->repository, "/srv/repo");
  EXPECT_EQ(found->relative, "laptop/monday");
}

TEST(MountTable, MountPointItselfHasAnEmptyRest) {
  const auto found = find_mount_in(parse_mount_table(kTable), "/mnt/v");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->relative, "");
}

TEST(MountTable, SiblingWithTheSamePrefixIsOutside) {
  const auto table = parse_mount_table(kTable);
  EXPECT_FALSE(find_mount_in(table, "/mnt/v2/laptop"));
  EXPECT_FALSE(find_mount_in(table, "/mnt"));
}

TEST(MountTable, OtherFileSystemMountedInsideIsOutside) {
  EXPECT_FALSE(find_mount_in(parse_mount_table(kTable), "/mnt/v/s/x/file"));
}

TEST(MountTable, LastOfStackedMountsCounts) {
  const std::string stacked = std::string(kTable) + "50 41 0:50 / /mnt/v rw - tmpfs tmpfs rw\n";
  EXPECT_FALSE(find_mount_in(parse_mount_table(stacked), "/mnt/v"));
}

}  // namespace
}  // namespace varve::control
