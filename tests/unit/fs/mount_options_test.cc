// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_options.h"

#include <gtest/gtest.h>

namespace varve::fs {
namespace {

TEST(MountOptions, ListSetsWhatItNames) {
  MountOptions options;
  ASSERT_TRUE(
      parse_mount_options("ro,allow_other,uid=12,gid=34,umask=027,cache=3M,engine=lru,"
                          "index_memory=5M",
                          false, options));
  EXPECT_TRUE(options.open.read_only);
  EXPECT_TRUE(options.allow_other);
  EXPECT_EQ(options.uid, 12U);
  EXPECT_EQ(options.gid, 34U);
  EXPECT_EQ(options.umask, 027U);
  EXPECT_EQ(options.open.cache_bytes, 3ULL << 20);
  EXPECT_EQ(options.open.index_bytes, 5ULL << 20);
  EXPECT_EQ(options.open.engine, "lru");
}

TEST(MountOptions, OptionsOfMountAndFstabAreSwallowed) {
  MountOptions options;
  EXPECT_TRUE(parse_mount_options(
      "nofail,_netdev,user,noauto,defaults,rw,relatime,x-systemd.automount,,nosuid,nodev", false,
      options));
}

TEST(MountOptions, TwoKeysAreRefused) {
  MountOptions two;
  EXPECT_FALSE(parse_mount_options("passphrase_file=/a,keyfile=/b", false, two));
  MountOptions options;
  ASSERT_TRUE(parse_mount_options("key_command=pass show a\\,b", false, options));
  EXPECT_EQ(options.key.key_file, "");
  EXPECT_EQ(options.key.key_command, "pass show a,b");
  MountOptions none;
  EXPECT_FALSE(parse_mount_options("keyfile=", false, none));
}

TEST(MountOptions, OfContrariesTheLastHolds) {
  MountOptions options;
  ASSERT_TRUE(parse_mount_options("suid,dev,noexec,ro,nosuid,nodev,exec,rw", false, options));
  EXPECT_FALSE(options.set_user_ids_work);
  EXPECT_FALSE(options.devices_work);
  EXPECT_FALSE(options.no_execution);
  EXPECT_FALSE(options.open.read_only);
  ASSERT_TRUE(parse_mount_options("nosuid,nodev,exec,rw,suid,dev,noexec,ro", false, options));
  EXPECT_TRUE(options.set_user_ids_work);
  EXPECT_TRUE(options.devices_work);
  EXPECT_TRUE(options.no_execution);
  EXPECT_TRUE(options.open.read_only);
}

TEST(MountOptions, UnknownOptionIsNamedUnlessSloppy) {
  MountOptions options;
  const auto strict = parse_mount_options("ro,fancy=1", false, options);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code(), ErrorCode::kInvalid);
  EXPECT_NE(strict.error().message().find("fancy"), std::string::npos);
  EXPECT_TRUE(parse_mount_options("fancy=1,plain", true, options));
}

TEST(MountOptions, BadValueIsRefusedEvenWhenSloppy) {
  for (const char* list :
       {"uid=", "gid=-1", "umask=8", "umask=1777", "cache=0", "cache=1X", "cache=99999999999999T",
        "engine=", "arrange_rate=fast", "index_memory=0"}) {
    MountOptions options;
    EXPECT_FALSE(parse_mount_options(list, true, options)) << list;
  }
}

TEST(MountOptions, KnownButMissingFeaturesAreUnsupported) {
  for (const char* list : {"auto_unmount"}) {
    MountOptions options;
    const auto parsed = parse_mount_options(list, true, options);
    ASSERT_FALSE(parsed) << list;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kUnsupported) << list;
  }
}

TEST(MountOptions, RetentionAndArrangingAreChosen) {
  MountOptions options;
  EXPECT_FALSE(options.rmdir_deletes);
  EXPECT_TRUE(options.open.arrange);
  ASSERT_TRUE(parse_mount_options("rmdir_deletes,noarrange,arrange_rate=3M", false, options));
  EXPECT_TRUE(options.rmdir_deletes);
  EXPECT_FALSE(options.rm_deletes_s);
  ASSERT_TRUE(parse_mount_options("rm_deletes", false, options));
  EXPECT_EQ(options.rm_deletes_s, 60U);
  ASSERT_TRUE(parse_mount_options("rm_deletes=5", false, options));
  EXPECT_EQ(options.rm_deletes_s, 5U);
  EXPECT_FALSE(parse_mount_options("rm_deletes=0", false, options));
  EXPECT_FALSE(options.open.arrange);
  EXPECT_EQ(options.open.arrange_bytes_per_second, 3U << 20);
}

TEST(MountOptions, StayingAwakeIsBounded) {
  MountOptions options;
  EXPECT_EQ(options.spin.count(), 0);
  ASSERT_TRUE(parse_mount_options("spin=50", false, options));
  EXPECT_EQ(options.spin.count(), 50);
  EXPECT_FALSE(parse_mount_options("spin=1001", false, options));
  EXPECT_FALSE(parse_mount_options("spin=-1", false, options));
}

TEST(MountOptions, RootIsASeriesOrOneOfItsVersions) {
  MountOptions options;
  ASSERT_TRUE(parse_mount_options("version=v\\,1,series=s", false, options));
  EXPECT_EQ(options.series, "s");
  EXPECT_EQ(options.version, "v,1");
  EXPECT_TRUE(check_mount_options(options));
  options.series.clear();
  EXPECT_FALSE(check_mount_options(options));
  EXPECT_FALSE(parse_mount_options("series=", true, options));
}

TEST(MountOptions, CommaInRepositoryPathIsEscaped) {
  const std::string list = fuse_option_list({}, "/a,b\\c");
  EXPECT_TRUE(list.starts_with("fsname=/a\\,b\\\\c,subtype=varve,")) << list;
  EXPECT_NE(list.find(",nosuid,nodev"), std::string::npos);
}

TEST(MountOptions, AllowOtherTurnsPermissionChecksOn) {
  MountOptions options;
  ASSERT_TRUE(parse_mount_options("allow_other", false, options));
  EXPECT_NE(fuse_option_list(options, "/r").find(",default_permissions"), std::string::npos);
  EXPECT_EQ(fuse_option_list({}, "/r").find("default_permissions"), std::string::npos);
}

}  // namespace
}  // namespace varve::fs
