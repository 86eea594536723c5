// SPDX-License-Identifier: Apache-2.0
// Restores into trees with folders of Varve itself.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "fake_version.h"
#include "file_tree.h"
#include "transfer/protected_folders.h"
#include "transfer/tree_remover.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

namespace fs = std::filesystem;
using transfer::ProtectedFolders;
using transfer::TreeRemover;

constexpr const char* kId = "0123456789abcdef0123456789abcdef";

base::UniqueFd open_folder(const std::string& path) {
  return base::UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

std::string reason_of(const ProtectedFolders& folders, const std::string& path) {
  const auto fd = open_folder(path);
  return folders.reason_to_keep(fd.get()).value_or("");
}

TEST(ProtectedFolders, RecognizesRepositoriesMemoryAndNamedFolders) {
  const TemporaryDirectory place;
  for (const char* name : {"repository", "copy", "memory", "named", "other", "odd"}) {
    fs::create_directory(place / name);
  }
  write_file(place / "repository/varve.repo", "text");
  write_file(place / "copy/varve.keys", "text");
  write_file(place / "memory/lock", "");
  write_file(place / ("memory/" + std::string(kId)), "varve-sequence 1 5\n");
  write_file(place / "other/lock", "");
  write_file(place / ("other/" + std::string(kId)), "something else");
  fs::create_directory(place / "odd/varve.repo");
  const ProtectedFolders folders({place / "named", place / "missing", ""});
  EXPECT_EQ(reason_of(folders, place / "repository"), "is a Varve repository");
  EXPECT_EQ(reason_of(folders, place / "copy"), "is a Varve repository");
  EXPECT_EQ(reason_of(folders, place / "memory"), "is where Varve remembers repositories");
  EXPECT_EQ(reason_of(folders, place / "named"), "has files of Varve itself");
  EXPECT_EQ(reason_of(folders, place / "other"), "");
  EXPECT_EQ(reason_of(folders, place / "odd"), "");
  fs::rename(place / "named", place / "renamed");
  EXPECT_EQ(reason_of(folders, place / "renamed"), "has files of Varve itself");
}

TEST(ProtectedFolders, APlaceInARepositoryIsRefusedAtAnyDepth) {
  const TemporaryDirectory place;
  fs::create_directories(place / "repository/a/b");
  fs::create_directory(place / "beside");
  fs::create_directory_symlink(place / "repository/a", place / "link");
  write_file(place / "repository/varve.repo", "text");
  const auto check = [&](const std::string& path, PlaceKind kind) {
    return check_outside_repositories(place / path, kind, {}, "go elsewhere").has_value();
  };
  for (const char* path : {"repository", "repository/a/b", "repository/new", "link", "link/new/x",
                           "beside/../repository/a"}) {
    EXPECT_FALSE(check(path, PlaceKind::kDirectory)) << path;
  }
  EXPECT_TRUE(check("beside", PlaceKind::kDirectory));
  EXPECT_TRUE(check("new/x", PlaceKind::kDirectory));
  EXPECT_TRUE(check("repository", PlaceKind::kRepository));
  EXPECT_FALSE(check("repository/a", PlaceKind::kRepository));
  EXPECT_FALSE(check("repository/x.tar", PlaceKind::kFile));
  EXPECT_FALSE(check("link/x.tar", PlaceKind::kFile));
  EXPECT_TRUE(check("x.tar", PlaceKind::kFile));
  // Any user may write a file into a folder that all share.
  fs::create_directory(place / "shared");
  write_file(place / "shared/varve.repo", "text");
  fs::create_directory(place / "shared/own");
  EXPECT_FALSE(check("shared/own", PlaceKind::kDirectory));
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ASSERT_EQ(::chmod((place / "shared").c_str(), 01777), 0);
  ASSERT_EQ(::chown((place / "shared/varve.repo").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(check("shared/own", PlaceKind::kDirectory));
}

class RestoreOverRepository : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(place_ / "x/deep/repository/catalog");
    write_file(place_ / "x/deep/repository/varve.repo", "superblock");
    write_file(place_ / "x/deep/repository/catalog/data.mdb", "catalog");
    write_file(place_ / "x/deep/other", "other");
  }
  Result<TransferReport> restore(const FakeNodePtr& root, bool dry_run, bool deletes = true) {
    FakeReader version(root);
    RestoreOptions options;
    options.delete_others = deletes;
    options.dry_run = dry_run;
    options.changed = [this](RestoreChange change, const std::string& path) {
      changes_.push_back(std::string(1, static_cast<char>(change)) + path);
    };
    options.kept = [this](const std::string& path, const std::string&) { kept_.push_back(path); };
    return restore_version(version, place_.path(), options, {});
  }
  void expect_repository() {
    EXPECT_EQ(read_file(place_ / "x/deep/repository/varve.repo"), "superblock");
    EXPECT_EQ(read_file(place_ / "x/deep/repository/catalog/data.mdb"), "catalog");
  }

  const TemporaryDirectory place_;
  std::vector<std::string> changes_;
  std::vector<std::string> kept_;
};

TEST_F(RestoreOverRepository, DeleteKeepsItAndTheFoldersAbove) {
  const auto planned = restore(make_directory(), true);
  ASSERT_TRUE(planned) << planned.error().message();
  const auto changes = std::exchange(changes_, {});
  EXPECT_EQ(changes, (std::vector<std::string>{"-x/deep/other"}));
  const auto report = restore(make_directory(), false);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(changes_, changes);
  EXPECT_EQ(report->problems, planned->problems);
  EXPECT_EQ(report->problems,
            (std::vector<std::string>{"x/deep/repository: kept: it is a Varve repository"}));
  EXPECT_EQ(kept_, (std::vector<std::string>{"x/deep/repository", "x/deep/repository"}));
  EXPECT_EQ(report->removed, 1U);
  EXPECT_FALSE(fs::exists(place_ / "x/deep/other"));
  expect_repository();
}

TEST_F(RestoreOverRepository, NothingIsWrittenIntoItAndNoFileReplacesIt) {
  auto catalog = make_directory();
  catalog->children = {{"data.mdb", make_file("bad")}};
  auto repository = make_directory();
  repository->children = {{"catalog", catalog}, {"varve.repo", make_file("bad")}};
  auto deep = make_directory();
  deep->children = {{"repository", repository}};
  auto x = make_directory();
  x->children = {{"deep", deep}};
  auto root = make_directory();
  root->children = {{"x", x}};
  for (const bool deletes : {false, true}) {
    const auto report = restore(root, false, deletes);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->problems.size(), 1U);
    expect_repository();
  }
  root->children = {{"x", make_file("a file")}};
  for (const bool dry_run : {true, false}) {
    const auto report = restore(root, dry_run);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->problems.size(), 2U);
    expect_repository();
  }
}

TEST_F(RestoreOverRepository, AnInterruptedRestoreOfARepositoryContinues) {
  for (const bool scatter : {false, true}) {
    for (const bool at_root : {false, true}) {
      SCOPED_TRACE(std::string(scatter ? "scatter" : "in order") + (at_root ? ", root" : ""));
      auto repository = make_directory();
      repository->children = {{"a", make_file(std::string(1000, 'a'))},
                              {"varve.repo", make_file("superblock")},
                              {"z", make_file(std::string(1000, 'z'))}};
      auto root = make_directory();
      root->children = {{"r", repository}};
      if (at_root) root = repository;
      const TemporaryDirectory place;
      RestoreOptions options;
      options.scatter = scatter;
      {
        FakeReader version(root);
        const auto report = restore_version(version, place / "out", options, [&](const auto& now) {
          return now.bytes_done < (scatter ? 1500U : 1010U);
        });
        ASSERT_FALSE(report);
      }
      FakeReader version(root);
      const auto report = restore_version(version, place / "out", options, {});
      ASSERT_TRUE(report) << report.error().message();
      EXPECT_EQ(report->problems, std::vector<std::string>());
      const std::string folder = at_root ? place / "out/" : place / "out/r/";
      EXPECT_EQ(read_file(folder + "varve.repo"), "superblock");
      EXPECT_EQ(read_file(folder + "z"), std::string(1000, 'z'));
      // A repository that is there before is kept.
      FakeReader again(root);
      const auto second = restore_version(again, place / "out", {}, {});
      if (at_root) {
        EXPECT_FALSE(second);
      } else {
        ASSERT_TRUE(second) << second.error().message();
        EXPECT_EQ(second->problems.size(), 1U);
      }
    }
  }
}

TEST(TreeRemover, ADirectoryThatIsMovedEndsTheRemoval) {
  const TemporaryDirectory place;
  std::string path = place / "out";
  std::string deep = "out";
  for (int level = 0; level < 200; ++level) deep += "/d";
  fs::create_directories(place / deep);
  write_file(place / (deep + "/first"), "");
  fs::create_directory(place / "elsewhere");
  write_file(place / "elsewhere/mine", "mine");
  const ProtectedFolders folders({});
  std::vector<std::string> kept;
  bool moved = false;
  TreeRemover remover(
      folders, false,
      [&](const std::string&) {
        // The directory's new parent is outside of the tree that is removed.
        if (!std::exchange(moved, true)) {
          fs::rename(place / (deep.substr(0, deep.size() - 2 * 180)), place / "elsewhere/d");
        }
      },
      [&](const std::string& at, const std::string&) { kept.push_back(at); });
  const auto fd = open_folder(place.path());
  EXPECT_FALSE(remover.remove(fd.get(), "out", "out"));
  EXPECT_EQ(kept.size(), 1U);
  EXPECT_EQ(read_file(place / "elsewhere/mine"), "mine");
}

TEST(TreeRemover, ATreeThatIsDeeperThanAPathIsRemoved) {
  const TemporaryDirectory place;
  fs::create_directory(place / "out");
  auto at = open_folder(place / "out");
  for (int level = 0; level < 2000; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), "directory", 0700), 0);
    at = base::UniqueFd(::openat(at.get(), "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid());
  }
  const ProtectedFolders folders({});
  int removed = 0;
  TreeRemover remover(
      folders, false, [&](const std::string&) { ++removed; },
      [](const std::string& path, const std::string& why) { ADD_FAILURE() << path << why; });
  const auto fd = open_folder(place.path());
  EXPECT_TRUE(remover.remove(fd.get(), "out", "out"));
  EXPECT_EQ(removed, 2001);
  EXPECT_FALSE(fs::exists(place / "out"));
}

}  // namespace
}  // namespace varve::testing
