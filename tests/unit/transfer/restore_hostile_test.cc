// SPDX-License-Identifier: Apache-2.0
// Tests versions that cp cannot produce: a restore must not leave its directory.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "fake_version.h"
#include "file_tree.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

namespace fs = std::filesystem;

TEST(RestoreOfHostileVersion, NamesThatNoFileCanHaveAreLeftOut) {
  using namespace std::string_literals;
  auto root = make_directory();
  root->children = {{"..", make_file("evil")},
                    {".", make_directory()},
                    {"", make_file("evil")},
                    {"../evil", make_file("evil")},
                    {"/tmp/varve-evil", make_file("evil")},
                    {"a\0b"s, make_file("evil")},
                    {std::string(256, 'n'), make_file("evil")},
                    {"good", make_file("good")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->problems.size(), 7U);
  EXPECT_EQ(read_file(place / "out/good"), "good");
  EXPECT_EQ(std::distance(fs::directory_iterator(place / "out"), {}), 1);
  EXPECT_FALSE(fs::exists(place / "evil"));
  EXPECT_FALSE(fs::exists("/tmp/varve-evil"));
}

TEST(RestoreOfHostileVersion, DirectoryOfASymlinksNameDoesNotLeadThroughIt) {
  const TemporaryDirectory place;
  fs::create_directory(place / "outside");
  auto inner = make_directory();
  inner->children = {{"evil", make_file("evil")}};
  auto root = make_directory();
  root->children = {{"a", make_symlink(place / "outside")}, {"a", inner}};
  FakeReader version(root);
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->problems.size(), 1U);
  EXPECT_TRUE(fs::is_empty(place / "outside"));
}

TEST(RestoreOfHostileVersion, FileOfASymlinksNameDoesNotWriteThroughIt) {
  const TemporaryDirectory place;
  write_file(place / "victim", "before");
  auto root = make_directory();
  root->children = {{"a", make_symlink(place / "victim")}, {"a", make_file("evil")}};
  FakeReader version(root);
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->problems.size(), 1U);
  EXPECT_EQ(read_file(place / "victim"), "before");
}

TEST(RestoreOfHostileVersion, UnknownFileTypeIsLeftOut) {
  auto root = make_directory();
  auto strange = make_file("x");
  strange->attributes.mode = 0644;
  root->children = {{"strange", strange}};
  FakeReader version(root);
  const TemporaryDirectory place;
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->problems.size(), 1U);
  EXPECT_TRUE(fs::is_empty(place / "out"));
}

TEST(RestoreOfHostileVersion, PathOfARestoreDoesNotFollowSymlinks) {
  auto root = make_directory();
  root->children = {{"link", make_symlink("/etc")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  RestoreOptions options;
  options.paths = {"link/passwd"};
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::kNotDirectory);
}

TEST(RestoreToHostileTarget, SymlinksInItAreReplacedAndNotFollowed) {
  auto inner = make_directory();
  inner->children = {{"f", make_file("inside")}};
  auto root = make_directory();
  root->children = {{"a", inner}, {"b", make_file("data")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  fs::create_directories(place / "outside");
  write_file(place / "victim", "before");
  fs::create_directory(place / "out");
  fs::create_directory_symlink(place / "outside", place / "out/a");
  fs::create_symlink(place / "victim", place / "out/b");
  fs::create_symlink(place / "victim", place / "out/.varve-restore.log");
  RestoreOptions options;
  options.segment_bytes = 1;  // Makes the restore write a log.
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->problems.empty());
  EXPECT_TRUE(fs::is_empty(place / "outside"));
  EXPECT_EQ(read_file(place / "victim"), "before");
  EXPECT_EQ(read_file(place / "out/a/f"), "inside");
  EXPECT_EQ(read_file(place / "out/b"), "data");
  EXPECT_FALSE(fs::is_symlink(place / "out/b"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(place / "out/.varve-restore.log")));
}

}  // namespace
}  // namespace varve::testing
