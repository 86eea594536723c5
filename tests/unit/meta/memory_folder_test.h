// SPDX-License-Identifier: Apache-2.0
// A folder in /dev/shm for tests of files in memory.
#pragma once

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>

#include "support/temp_repository.h"

namespace varve::meta {

class MemoryFolderTest : public testing::Test {
 protected:
  /// Makes the folder `top_` with these subfolders, or skips the test where /dev/shm is no tmpfs.
  void make_places(std::initializer_list<const char*> places) {
    struct statfs disk {};
    if (::statfs("/dev/shm", &disk) != 0 || disk.f_type != TMPFS_MAGIC) {
      GTEST_SKIP() << "/dev/shm is not in memory";
    }
    directory_.emplace("/dev/shm");
    top_ = directory_->path();
    for (const char* place : places) {
      std::filesystem::create_directory(top_ + place);
      ASSERT_EQ(::chmod((top_ + place).c_str(), 0755), 0);
    }
  }

  std::string top_;

 private:
  std::optional<test::TempDirectory> directory_;
};

}  // namespace varve::meta
