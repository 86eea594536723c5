// SPDX-License-Identifier: Apache-2.0
// Tests behaviour specific to the kernel's file system; the rest is in tests/contract.
#include "io/posix_file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/coding.h"

namespace varve::io {
namespace {

class PosixFileSystem : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/varve-posix-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    root_ = std::filesystem::canonical(path).string();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string root_;
  std::unique_ptr<FileSystem> fs_ = make_posix_file_system();
};

TEST(ErrorFromErrno, CodesFollowTheErrno) {
  EXPECT_EQ(error_from_errno(ENOSPC, "x").code(), ErrorCode::kNoSpace);
  EXPECT_EQ(error_from_errno(EDQUOT, "x").code(), ErrorCode::kNoSpace);
  EXPECT_EQ(error_from_errno(ENOENT, "x").code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_from_errno(EEXIST, "x").code(), ErrorCode::kExists);
  EXPECT_EQ(error_from_errno(EROFS, "x").code(), ErrorCode::kReadOnly);
  EXPECT_EQ(error_from_errno(EIO, "x").code(), ErrorCode::kIo);
  EXPECT_EQ(error_from_errno(EACCES, "x").code(), ErrorCode::kIo);
}

TEST(ErrorFromErrno, MessageNamesWhatFailedAndWhatToDo) {
  const Error error = error_from_errno(ENOSPC, "cannot write /a/b");
  EXPECT_EQ(error.errno_value(), ENOSPC);
  EXPECT_EQ(error.message(),
            "cannot write /a/b: No space left on device; free some space on that disk and try "
            "again");
}

TEST_F(PosixFileSystem, FilesAndDirectoriesAreForTheirOwnerOnly) {
  ASSERT_TRUE(fs_->make_directory(root_ + "/d").has_value());
  ASSERT_TRUE(fs_->open(root_ + "/d/f", OpenMode::kCreateNew).has_value());
  struct stat st {};
  ASSERT_EQ(::stat((root_ + "/d").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 077, 0U);
  ASSERT_EQ(::stat((root_ + "/d/f").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 077, 0U);
}

TEST_F(PosixFileSystem, DescriptorsDoNotPassToOtherPrograms) {
  auto file = fs_->open(root_ + "/f", OpenMode::kReadWrite);
  ASSERT_TRUE(file.has_value());
  auto lock = fs_->lock(root_ + "/lock");
  ASSERT_TRUE(lock.has_value());
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (error || !target.string().starts_with(root_)) continue;
    ++found;
    const int flags = ::fcntl(std::stoi(entry.path().filename().string()), F_GETFD);
    EXPECT_NE(flags & FD_CLOEXEC, 0) << target;
  }
  EXPECT_EQ(found, 2);
}

TEST_F(PosixFileSystem, DirectAccessFallsBackWhereItIsRefused) {
  // procfs refuses O_DIRECT; reading its files must still work.
  if (::open("/proc/version", O_RDONLY | O_DIRECT) >= 0 || errno != EINVAL) {
    GTEST_SKIP() << "this kernel's procfs takes O_DIRECT";
  }
  EXPECT_TRUE(fs_->open("/proc/version", OpenMode::kReadDirect).has_value());
}

TEST_F(PosixFileSystem, WhatIsNoRegularFileIsRefusedAtOnce) {
  const auto pipe = root_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto is_refused = [](const auto& result) {
    return !result && result.error().code() == ErrorCode::kCorrupt;
  };
  for (const std::string& path : {pipe, std::string("/dev/full"), std::string("/dev/zero")}) {
    for (const auto mode : {OpenMode::kRead, OpenMode::kReadPlanned, OpenMode::kReadDirect,
                            OpenMode::kReadWrite, OpenMode::kWriteDirect}) {
      EXPECT_TRUE(is_refused(fs_->open(path, mode))) << path;
    }
    EXPECT_TRUE(is_refused(fs_->read_file(path, 100))) << path;
    EXPECT_TRUE(is_refused(fs_->lock(path))) << path;
  }
}

TEST_F(PosixFileSystem, FailedAtomicWriteLeavesTheOldFile) {
  ASSERT_TRUE(fs_->write_file_atomically(root_, "f", base::as_bytes("old")).has_value());
  // A directory has the name of the temporary file for the new contents.
  ASSERT_TRUE(fs_->make_directory(root_ + "/f.tmp").has_value());
  EXPECT_FALSE(fs_->write_file_atomically(root_, "f", base::as_bytes("new")).has_value());
  EXPECT_EQ(*fs_->read_file(root_ + "/f", 10), "old");
}

}  // namespace
}  // namespace varve::io
