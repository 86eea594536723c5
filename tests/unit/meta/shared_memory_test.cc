// SPDX-License-Identifier: Apache-2.0
// Files in memory that processes find by name, in a place where other users can make names.
#include "meta/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "memory_folder_test.h"
#include "support/temp_repository.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr uid_t kSomeUser = 4001;
constexpr std::uint64_t kBytes = 8192;

class SharedMemoryTest : public MemoryFolderTest {
 protected:
  void SetUp() override { make_places({"/a", "/b"}); }
  std::vector<MemoryPlace> places() const {
    return {{top_ + "/a", ::geteuid()}, {top_ + "/b", ::geteuid()}};
  }
  Result<SharedFile> open(uid_t user = ::geteuid()) const {
    return SharedFile::open(places(), user, "file", kBytes);
  }
  std::string folder(const char* place = "/a", uid_t user = ::geteuid()) const {
    return top_ + place + "/varve-" + std::to_string(user);
  }
  static struct stat status_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status;
  }
  static ino_t inode_of(const SharedFile& file) {
    struct stat status {};
    EXPECT_EQ(::fstat(file.descriptor(), &status), 0);
    return status.st_ino;
  }
};

TEST_F(SharedMemoryTest, SecondOpenerFindsTheFileOfTheFirst) {
  const auto first = must(open());
  EXPECT_TRUE(first.is_new());
  const auto second = must(open());
  EXPECT_FALSE(second.is_new());
  EXPECT_EQ(inode_of(first), inode_of(second));
  EXPECT_EQ(status_of(folder()).st_mode & 07777, 0700U);
  const auto file = status_of(folder() + "/file");
  EXPECT_EQ(file.st_mode & 07777, 0600U);
  EXPECT_EQ(file.st_size, static_cast<off_t>(kBytes));
  EXPECT_GE(file.st_blocks * 512, static_cast<blkcnt_t>(kBytes));
}

TEST_F(SharedMemoryTest, NameThatWasRemovedIsNoticed) {
  const auto first = must(open());
  EXPECT_TRUE(first.has_its_name());
  std::filesystem::remove(folder() + "/file");
  EXPECT_FALSE(first.has_its_name());
  const auto second = must(open());
  EXPECT_NE(inode_of(first), inode_of(second));
  first.remove_name();
  EXPECT_TRUE(second.has_its_name());
  second.remove_name();
  EXPECT_FALSE(std::filesystem::exists(folder() + "/file"));
}

TEST_F(SharedMemoryTest, PresentFileCountsBeforeABetterPlace) {
  std::filesystem::rename(top_ + "/a", top_ + "/kept");
  const auto first = must(open());
  std::filesystem::rename(top_ + "/kept", top_ + "/a");
  EXPECT_EQ(inode_of(first), inode_of(must(open())));
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

TEST_F(SharedMemoryTest, FolderOfAnotherUserIsPassedOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  std::filesystem::create_directory(folder());
  ASSERT_EQ(::chown(folder().c_str(), kSomeUser, kSomeUser), 0);
  const auto file = must(open());
  EXPECT_TRUE(std::filesystem::exists(folder("/b") + "/file"));
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

TEST_F(SharedMemoryTest, LinkInPlaceOfTheFolderIsNotFollowed) {
  std::filesystem::create_directory(top_ + "/target");
  ASSERT_EQ(::chmod((top_ + "/target").c_str(), 0700), 0);
  for (const char* place : {"/a", "/b"}) {
    std::filesystem::create_directory_symlink(top_ + "/target", folder(place));
  }
  EXPECT_EQ(code_of(open()), ErrorCode::kUnsupported);
  EXPECT_TRUE(std::filesystem::is_empty(top_ + "/target"));
}

TEST_F(SharedMemoryTest, LinkPipeOrHardLinkInPlaceOfTheFileIsRefused) {
  must(open()).remove_name();
  std::ofstream(top_ + "/target") << "kept";
  ASSERT_EQ(::chmod((top_ + "/target").c_str(), 0600), 0);
  const auto name = folder() + "/file";
  std::filesystem::create_symlink(top_ + "/target", name);
  EXPECT_TRUE(must(open()).is_new());  // In the second place.
  std::filesystem::remove_all(folder("/b"));
  std::filesystem::remove(name);
  std::filesystem::create_hard_link(top_ + "/target", name);
  EXPECT_TRUE(must(open()).is_new());
  std::filesystem::remove_all(folder("/b"));
  std::filesystem::remove(name);
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  EXPECT_TRUE(must(open()).is_new());
  EXPECT_EQ(std::filesystem::file_size(top_ + "/target"), 4U);
}

TEST_F(SharedMemoryTest, FolderThatOthersMayEnterIsRefused) {
  for (const char* place : {"/a", "/b"}) {
    std::filesystem::create_directory(folder(place));
    ASSERT_EQ(::chmod(folder(place).c_str(), 0750), 0);
  }
  const auto opened = open();
  EXPECT_EQ(code_of(opened), ErrorCode::kUnsupported);
  EXPECT_NE(opened.error().message().find("chmod 700"), std::string::npos);
}

TEST_F(SharedMemoryTest, PlaceThatOthersMayChangeOrThatIsOnADiskIsRefused) {
  ASSERT_EQ(::chmod((top_ + "/a").c_str(), 0777), 0);
  const std::vector<MemoryPlace> open_to_all = {{top_ + "/a", ::geteuid()}};
  EXPECT_EQ(code_of(SharedFile::open(open_to_all, ::geteuid(), "file", kBytes)),
            ErrorCode::kUnsupported);
  ASSERT_EQ(::chmod((top_ + "/a").c_str(), 01777), 0);
  EXPECT_TRUE(SharedFile::open(open_to_all, ::geteuid(), "file", kBytes).has_value());
  const std::vector<MemoryPlace> no_tmpfs = {{"/proc", 0}, {top_ + "/missing", ::geteuid()}};
  const auto opened = SharedFile::open(no_tmpfs, ::geteuid(), "file", kBytes);
  EXPECT_EQ(code_of(opened), ErrorCode::kUnsupported);
  EXPECT_NE(opened.error().message().find("no tmpfs"), std::string::npos);
}

TEST_F(SharedMemoryTest, RootMakesTheUsersFileForTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  const auto by_root = must(open(kSomeUser));
  EXPECT_EQ(status_of(folder("/a", kSomeUser)).st_uid, kSomeUser);
  EXPECT_EQ(status_of(folder("/a", kSomeUser) + "/file").st_uid, kSomeUser);
  ASSERT_EQ(::chmod(top_.c_str(), 0755), 0);
  const auto all = places();
  ASSERT_EQ(::seteuid(kSomeUser), 0);
  auto by_user = SharedFile::open({{all[0].path, 0}, {all[1].path, 0}}, kSomeUser, "file", kBytes);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(inode_of(must(std::move(by_user))), inode_of(by_root));
}

TEST_F(SharedMemoryTest, OtherUserCannotMakeIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::chmod(top_.c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(kSomeUser), 0);
  const auto opened = SharedFile::open({{top_ + "/a", 0}}, 0, "file", kBytes);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(code_of(opened), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace varve::meta
