// SPDX-License-Identifier: Apache-2.0
#include "fs/posix_acl.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <initializer_list>

#include "base/coding.h"

namespace varve::fs {
namespace {

struct Entry {
  std::uint16_t tag;
  std::uint16_t permissions;
  std::uint32_t id = 0xffffffff;
};

std::string acl(std::initializer_list<Entry> entries) {
  std::string value;
  base::ByteWriter writer(value);
  writer.u32(2);
  for (const Entry& entry : entries) {
    writer.u16(entry.tag);
    writer.u16(entry.permissions);
    writer.u32(entry.id);
  }
  return value;
}

TEST(PosixAcl, MinimalAclIsItsPermissionBits) {
  const auto summary = summarise_acl(acl({{1, 6}, {4, 5}, {0x20, 4}}));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->permissions, 0654U);
  EXPECT_FALSE(summary->extended);
}

TEST(PosixAcl, MaskStandsForTheGroupBits) {
  const auto summary = summarise_acl(acl({{1, 7}, {2, 7, 1000}, {4, 0}, {0x10, 6}, {0x20, 1}}));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->permissions, 0761U);
  EXPECT_TRUE(summary->extended);
}

TEST(PosixAcl, OtherBytesAreNoAcl) {
  const std::string good = acl({{1, 6}, {4, 5}, {0x20, 4}});
  EXPECT_FALSE(summarise_acl(""));
  EXPECT_FALSE(summarise_acl(good.substr(0, good.size() - 1)));
  EXPECT_FALSE(summarise_acl(acl({{1, 6}, {4, 5}})));
  EXPECT_FALSE(summarise_acl(acl({{1, 8}, {4, 5}, {0x20, 4}})));
  EXPECT_FALSE(summarise_acl(acl({{1, 6}, {4, 5}, {0x20, 4}, {0x40, 4}})));
}

TEST(PosixAcl, ChmodChangesMaskAndKeepsNamedUsers) {
  const std::string before = acl({{1, 7}, {2, 7, 1000}, {4, 5}, {0x10, 7}, {0x20, 5}});
  const std::string after = acl({{1, 6}, {2, 7, 1000}, {4, 5}, {0x10, 4}, {0x20, 0}});
  EXPECT_EQ(acl_after_chmod(before, 0640), after);
}

TEST(PosixAcl, DefaultAclLessTheModeIsInherited) {
  const std::string directory = acl({{1, 7}, {2, 7, 1000}, {4, 5}, {0x10, 7}, {0x20, 5}});
  const auto inherited = inherit_acl(directory, S_IFREG | 0640);
  ASSERT_TRUE(inherited);
  EXPECT_EQ(inherited->permissions, 0640U);
  EXPECT_EQ(inherited->access, acl({{1, 6}, {2, 7, 1000}, {4, 5}, {0x10, 4}, {0x20, 0}}));
}

TEST(PosixAcl, InheritedAclThatTheModeSaysIsNotKept) {
  const auto inherited = inherit_acl(acl({{1, 7}, {4, 5}, {0x20, 0}}), 0666);
  ASSERT_TRUE(inherited);
  EXPECT_EQ(inherited->permissions, 0640U);
  EXPECT_EQ(inherited->access, "");
  EXPECT_FALSE(inherit_acl("junk", 0666));
}

}  // namespace
}  // namespace varve::fs
