// SPDX-License-Identifier: Apache-2.0
// The paths that a file system below one directory refuses, with and without openat2(2).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "base/coding.h"
#include "io/posix_file_system.h"

namespace varve::io {
namespace {

constexpr std::array kModes{OpenMode::kRead,      OpenMode::kReadPlanned, OpenMode::kReadDirect,
                            OpenMode::kReadWrite, OpenMode::kWriteDirect, OpenMode::kCreateNew};

class RootedFileSystem : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/varve-rooted-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    top_ = std::filesystem::canonical(path).string();
    root_ = top_ + "/repo";
    victim_ = top_ + "/victim";
    ASSERT_EQ(::mkdir(root_.c_str(), 0700), 0);
    ASSERT_EQ(::mkdir((root_ + "/d").c_str(), 0700), 0);
    ASSERT_EQ(::mkdir(victim_.c_str(), 0700), 0);
    ASSERT_TRUE(plain_->open(victim_ + "/f", OpenMode::kCreateNew).has_value());
    files_ = rooted({});
    ASSERT_NE(files_, nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  std::unique_ptr<FileSystem> rooted(RootOptions options) {
    options.walk_by_hand = GetParam();
    auto opened = open_root(root_, options);
    return opened ? std::move(*opened) : nullptr;
  }
  template <typename T>
  static std::optional<ErrorCode> code_of(const Result<T>& result) {
    return result ? std::nullopt : std::optional(result.error().code());
  }
  void link_to(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), (root_ + "/" + name).c_str()), 0);
  }
  void make(const std::string& path) {
    ASSERT_TRUE(plain_->open(path, OpenMode::kCreateNew).has_value());
  }

  std::string top_;
  std::string root_;
  std::string victim_;
  std::unique_ptr<FileSystem> plain_ = make_posix_file_system();
  std::unique_ptr<FileSystem> files_;
};

TEST_P(RootedFileSystem, FoldersThatAreLinksLeadNowhere) {
  link_to(victim_, "link");
  link_to("../../victim", "d/inner");
  for (const auto& folder : {root_ + "/link", root_ + "/d/inner"}) {
    for (const auto mode : kModes)
      EXPECT_EQ(code_of(files_->open(folder + "/f", mode)), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->make_directory(folder + "/new")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->remove(folder + "/f")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->rename(folder + "/f", root_ + "/f")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->rename(root_ + "/d", folder + "/d")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->list(folder)), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->sync_directory(folder)), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->exists(folder + "/f")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->tree_bytes(folder + "/f")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->space(folder)), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->lock(folder + "/f")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(files_->lock_shared(folder + "/f")), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(*plain_->list(victim_), std::vector<std::string>{"f"});
}

TEST_P(RootedFileSystem, FilesThatAreLinksAreRefused) {
  link_to(victim_ + "/f", "f");
  link_to(victim_ + "/new", "new");
  for (const auto mode : kModes) {
    EXPECT_FALSE(files_->open(root_ + "/f", mode).has_value());
    EXPECT_FALSE(files_->open(root_ + "/new", mode).has_value());
  }
  EXPECT_EQ(code_of(files_->lock(root_ + "/f")), ErrorCode::kCorrupt);
  EXPECT_EQ(*files_->tree_bytes(root_ + "/f"), 0U);
  // Removes the link, not its target.
  EXPECT_TRUE(files_->remove(root_ + "/f").has_value());
  EXPECT_EQ(*plain_->list(victim_), std::vector<std::string>{"f"});
}

TEST_P(RootedFileSystem, FilesWithAnotherNameAreReadButNotWritten) {
  ASSERT_EQ(::link((victim_ + "/f").c_str(), (root_ + "/f").c_str()), 0);
  EXPECT_TRUE(files_->open(root_ + "/f", OpenMode::kRead).has_value());
  EXPECT_EQ(code_of(files_->open(root_ + "/f", OpenMode::kReadWrite)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(files_->open(root_ + "/f", OpenMode::kWriteDirect)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(files_->lock(root_ + "/f")), ErrorCode::kCorrupt);
}

TEST_P(RootedFileSystem, PathsStayBelowTheRoot) {
  for (const auto& path : {victim_ + "/f", root_ + "/../victim/f", root_ + "/d/../../victim/f",
                           root_ + "x/f", std::string("f")}) {
    EXPECT_EQ(code_of(files_->open(path, OpenMode::kRead)), ErrorCode::kInvalid) << path;
    EXPECT_EQ(code_of(files_->remove(path)), ErrorCode::kInvalid) << path;
  }
  make(root_ + "/d/f");
  EXPECT_TRUE(files_->open(root_ + "//d/./f", OpenMode::kRead).has_value());
}

TEST_P(RootedFileSystem, TheRootItselfMayBeReachedThroughALink) {
  const auto link = top_ + "/link";
  ASSERT_EQ(::symlink(root_.c_str(), link.c_str()), 0);
  const auto opened = open_root(link, {.walk_by_hand = GetParam()});
  ASSERT_TRUE(opened.has_value());
  EXPECT_TRUE((*opened)->open(link + "/d/f", OpenMode::kCreateNew).has_value());
}

TEST_P(RootedFileSystem, ItStaysWithTheDirectoryThatWasOpened) {
  ASSERT_EQ(::rename(root_.c_str(), (top_ + "/moved").c_str()), 0);
  ASSERT_EQ(::symlink(victim_.c_str(), root_.c_str()), 0);
  ASSERT_TRUE(files_->open(root_ + "/d/f", OpenMode::kCreateNew).has_value());
  EXPECT_TRUE(*plain_->exists(top_ + "/moved/d/f"));
}

TEST_P(RootedFileSystem, OthersFoldersAndFilesAreRefusedUnlessTrusted) {
  make(root_ + "/d/f");
  make(root_ + "/g");
  const auto trusting = rooted({.trust_owner = true});
  ASSERT_EQ(::chmod((root_ + "/d").c_str(), 0770), 0);
  EXPECT_EQ(code_of(files_->open(root_ + "/d/f", OpenMode::kRead)), ErrorCode::kNotPermitted);
  EXPECT_EQ(code_of(files_->list(root_ + "/d")), ErrorCode::kNotPermitted);
  EXPECT_TRUE(trusting->open(root_ + "/d/f", OpenMode::kRead).has_value());
  ASSERT_EQ(::chmod((root_ + "/d").c_str(), 0755), 0);
  EXPECT_TRUE(files_->open(root_ + "/d/f", OpenMode::kRead).has_value());
  ASSERT_EQ(::chmod((root_ + "/g").c_str(), 0602), 0);
  EXPECT_EQ(code_of(files_->open(root_ + "/g", OpenMode::kRead)), ErrorCode::kNotPermitted);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  constexpr uid_t kOther = 4001;
  ASSERT_EQ(::chown((root_ + "/d/f").c_str(), kOther, kOther), 0);
  EXPECT_EQ(code_of(files_->open(root_ + "/d/f", OpenMode::kRead)), ErrorCode::kNotPermitted);
  EXPECT_TRUE(trusting->open(root_ + "/d/f", OpenMode::kRead).has_value());
  ASSERT_EQ(::chown(root_.c_str(), kOther, kOther), 0);
  EXPECT_EQ(rooted({}), nullptr);
  EXPECT_NE(rooted({.trust_owner = true}), nullptr);
}

TEST_P(RootedFileSystem, SharedLocksExcludeTheWriterAndMakeNoFile) {
  const auto path = root_ + "/lock";
  EXPECT_EQ(code_of(files_->lock_shared(path)), ErrorCode::kNotFound);
  EXPECT_FALSE(*files_->exists(path));
  make(path);
  auto first = files_->lock_shared(path);
  const auto second = files_->lock_shared(path);
  EXPECT_TRUE(first.has_value());
  EXPECT_TRUE(second.has_value());
  EXPECT_EQ(files_->lock(path).error().code(), ErrorCode::kLocked);
}

INSTANTIATE_TEST_SUITE_P(Every, RootedFileSystem, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& by_hand) {
                           return std::string(by_hand.param ? "ByHand" : "Openat2");
                         });

}  // namespace
}  // namespace varve::io
