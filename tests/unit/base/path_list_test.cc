// SPDX-License-Identifier: Apache-2.0
// Lists of paths in environment variables.
#include "base/path_list.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace varve::base {
namespace {

class PathList : public testing::Test {
 protected:
  PathList() {
    std::string pattern = testing::TempDir() + "/varve-XXXXXX";
    folder_ = std::filesystem::canonical(::mkdtemp(pattern.data())).string();
    std::filesystem::create_directory(folder_ + "/there");
    std::filesystem::create_directory_symlink("there", folder_ + "/link");
  }
  ~PathList() override {
    ::unsetenv("VARVE_PATH_LIST");
    std::filesystem::remove_all(folder_);
  }
  bool lists(const std::string& list, const std::string& path) {
    ::setenv("VARVE_PATH_LIST", list.c_str(), 1);
    return is_listed_path("VARVE_PATH_LIST", path);
  }
  std::string folder_;
};

TEST_F(PathList, NamesTheFolderUnderAnyOfItsPaths) {
  EXPECT_TRUE(lists(folder_ + "/there", folder_ + "/there"));
  EXPECT_TRUE(lists("/nothing:" + folder_ + "/there/:", folder_ + "/link"));
  EXPECT_TRUE(lists(folder_ + "/link", folder_ + "/./there/"));
  EXPECT_FALSE(lists(folder_ + "/there", folder_));
  EXPECT_FALSE(lists(folder_, folder_ + "/there"));
  EXPECT_FALSE(lists("", folder_ + "/there"));
}

TEST_F(PathList, NamesAFolderThatIsStillToBeMade) {
  EXPECT_TRUE(lists(folder_ + "/new", folder_ + "/new"));
  EXPECT_TRUE(lists(folder_ + "/there/new/", folder_ + "/link/new"));
  EXPECT_FALSE(lists(folder_ + "/new", folder_ + "/other"));
}

TEST_F(PathList, TakesAbsolutePathsOnly) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_FALSE(lists("there", "there"));
  EXPECT_TRUE(lists(folder_ + "/there", "there"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace varve::base
