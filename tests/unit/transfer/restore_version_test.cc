// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "fake_version.h"
#include "file_tree.h"
#include "varve/backup.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

namespace fs = std::filesystem;

TEST(RestoreVersion, TargetKeepsWhatTheVersionDoesNotHave) {
  auto root = make_directory();
  root->children = {{"f", make_file("data")}};
  for (const bool delete_others : {false, true}) {
    const TemporaryDirectory place;
    write_file(place / "mine", "mine");
    FakeReader version(root);
    RestoreOptions options;
    options.delete_others = delete_others;
    const auto report = restore_version(version, place.path(), options, {});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(read_file(place / "f"), "data");
    EXPECT_EQ(fs::exists(place / "mine"), !delete_others);
    EXPECT_EQ(report->removed, delete_others ? 1U : 0U);
  }
}

TEST(RestoreVersion, SecondRestoreToTheSameDirectoryIsRefusedMeanwhile) {
  auto root = make_directory();
  root->children = {{"f", make_file("data")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  std::optional<ErrorCode> second;
  ASSERT_TRUE(restore_version(version, place / "out", {}, [&](const TransferProgress&) {
    FakeReader other(root);
    const auto report = restore_version(other, place / "out", {}, {});
    if (!report) second = report.error().code();
    return true;
  }));
  EXPECT_EQ(second, ErrorCode::kBusy);
}

TEST(RestoreVersion, ARestoreContinuedWithOtherSegmentsLeavesNoPartOfAFile) {
  auto root = make_directory();
  root->children = {{"f", make_file(std::string(6U << 20, 'x'))}};
  const TemporaryDirectory place;
  {
    FakeReader version(root);
    RestoreOptions options;
    options.segment_bytes = 1U << 20;
    const auto report = restore_version(version, place / "out", options, [&](const auto& now) {
      if (now.bytes_done < (4U << 20)) return true;
      // Waits until the log has a point.
      const auto lines = [&] {
        const std::string log = read_file(place / "out/.varve-restore.log");
        return std::count(log.begin(), log.end(), '\n');
      };
      while (lines() < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return false;
    });
    ASSERT_FALSE(report);
  }
  FakeReader version(root);
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->resumed);
  EXPECT_EQ(read_file(place / "out/f"), root->children[0].second->data);
  for (const auto& entry : fs::directory_iterator(place / "out")) {
    EXPECT_EQ(entry.path().filename(), "f") << "something is left";
  }
}

TEST(RestoreVersion, SeveralPathsKeepTheirPlaces) {
  auto inner = make_directory();
  inner->children = {{"f", make_file("inner")}, {"g", make_file("other")}};
  auto root = make_directory();
  root->children = {{"a", make_file("outer")}, {"b", make_file("not this")}, {"d", inner}};
  FakeReader version(root);
  const TemporaryDirectory place;
  RestoreOptions options;
  options.paths = {"d/g", "a"};
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(read_file(place / "out/a"), "outer");
  EXPECT_EQ(read_file(place / "out/d/g"), "other");
  EXPECT_FALSE(fs::exists(place / "out/b"));
  EXPECT_FALSE(fs::exists(place / "out/d/f"));
}

/// The first run stops inside a file of many segments. A second run reads only the last segment and
/// the rest.
TEST(RestoreVersion, InterruptedFileIsContinuedWhereItsLogEnds) {
  constexpr std::uint64_t kSize = 24 << 20;
  std::string data(kSize, 'x');
  for (std::size_t i = 0; i < data.size(); i += 4096) data[i] = static_cast<char>(i >> 12);
  auto root = make_directory();
  root->children = {{"f", make_file(data)}};
  const TemporaryDirectory place;
  RestoreOptions options;
  options.segment_bytes = 2 << 20;
  FakeReader version(root);
  // The restore skips a point while it still syncs the one before. So the test waits for the first
  // point after one third of the file, and for the second after two thirds.
  constexpr std::ptrdiff_t kLogHeaderLines = 3;
  const auto wait_for_points = [&](std::uint64_t bytes_done) {
    const auto points = static_cast<std::ptrdiff_t>(bytes_done / (kSize / 3));
    for (int tries = 0; tries < 2000; ++tries) {
      const auto log = fs::exists(place / "out/.varve-restore.log")
                           ? read_file(place / "out/.varve-restore.log")
                           : std::string();
      if (points == 0 || std::ranges::count(log, '\n') >= kLogHeaderLines + points) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  const auto stopped =
      restore_version(version, place / "out", options, [&](const TransferProgress& p) {
        wait_for_points(std::min(p.bytes_done, kSize - 1));
        return p.bytes_done < kSize - (2 << 20);
      });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kInterrupted);
  EXPECT_FALSE(fs::exists(place / "out/f"));
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->resumed);
  EXPECT_LT(report->bytes, kSize);
  EXPECT_TRUE(read_file(place / "out/f") == data);
  EXPECT_EQ(std::distance(fs::directory_iterator(place / "out"), {}), 1);
}

TEST(RestoreVersion, EmptyTargetIsUsed) {
  const TemporaryDirectory place;
  auto root = make_directory();
  root->children = {{"f", make_file("data")}};
  FakeReader version(root);
  ASSERT_TRUE(restore_version(version, place.path(), {}, {}));
  EXPECT_EQ(read_file(place / "f"), "data");
}

TEST(RestoreVersion, PathOfADirectoryRestoresItsContent) {
  auto inner = make_directory();
  inner->children = {{"f", make_file("inner")}};
  auto root = make_directory();
  root->children = {{"a", make_file("outer")}, {"d", inner}};
  FakeReader version(root);
  const TemporaryDirectory place;
  RestoreOptions options;
  options.paths = {"d"};
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->entries, 1U);
  EXPECT_EQ(read_file(place / "out/f"), "inner");
  EXPECT_FALSE(fs::exists(place / "out/a"));
}

TEST(RestoreVersion, PathOfAFileRestoresItUnderItsName) {
  auto root = make_directory();
  root->children = {{"a", make_file("outer")}, {"b", make_file("other")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  RestoreOptions options;
  options.paths = {"a"};
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(read_file(place / "out/a"), "outer");
  EXPECT_FALSE(fs::exists(place / "out/b"));
}

TEST(RestoreVersion, UnknownPathMakesNoDirectory) {
  FakeReader version(make_directory());
  const TemporaryDirectory place;
  RestoreOptions options;
  options.paths = {"missing"};
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(place / "out"));
}

TEST(RestoreVersion, FilesAreOpenedInTreeOrder) {
  auto root = make_directory();
  for (const char* directory : {"a", "b", "c"}) {
    auto inner = make_directory();
    // More entries than one batch of a listing has.
    for (int i = 1000; i < 1600; ++i) {
      inner->children.emplace_back(std::to_string(i), make_file("x"));
    }
    root->children.emplace_back(directory, inner);
  }
  FakeReader version(root);
  const TemporaryDirectory place;
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(version.opened().size(), 1800U);
  EXPECT_TRUE(std::is_sorted(version.opened().begin(), version.opened().end()));
  EXPECT_EQ(report->entries, 1803U);
}

TEST(RestoreVersion, ProgressThatReturnsFalseStops) {
  auto root = make_directory();
  root->children = {{"a", make_file(std::string(100, 'a'))}, {"b", make_file("b")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  const auto report = restore_version(version, place / "out", {},
                                      [](const TransferProgress& p) { return p.bytes_done == 0; });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::kInterrupted);
  EXPECT_FALSE(fs::exists(place / "out/b"));
}

TEST(RestoreVersion, WithoutSparseHolesBecomeBlocks) {
  auto file = make_file("");
  file->attributes.size = 3 << 20;
  file->data.resize(file->attributes.size);
  auto root = make_directory();
  root->children = {{"f", file}};
  const TemporaryDirectory place;
  for (const bool sparse : {true, false}) {
    FakeReader version(root);
    RestoreOptions options;
    options.sparse = sparse;
    const std::string out = place / (sparse ? "sparse" : "full");
    ASSERT_TRUE(restore_version(version, out, options, {}));
    struct stat status {};
    ASSERT_EQ(::stat((out + "/f").c_str(), &status), 0);
    EXPECT_EQ(status.st_size, 3 << 20);
    EXPECT_EQ(status.st_blocks * 512 >= status.st_size, !sparse);
  }
}

/// 300 levels with names of 50 bytes: more levels than open descriptors, and a path longer than
/// PATH_MAX.
TEST(RestoreVersion, TreeDeeperThanAnyPathComesBackAndIsStoredAgain) {
  constexpr int kDepth = 300;
  const std::string name(50, 'd');
  auto linked = make_file("linked");
  auto root = make_directory();
  auto at = root;
  for (int i = 0; i < kDepth; ++i) {
    auto next = make_directory();
    next->attributes.mtime = {1600000000 + i, 5};
    at->children = {{name, next}};
    at = next;
  }
  at->children = {{"bottom", make_file("deep")}, {"link", linked}};
  root->children.emplace_back("top", linked);
  FakeReader version(root);
  const TemporaryDirectory place;
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->problems.empty());

  base::UniqueFd fd(::open((place / "out").c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < kDepth; ++i) {
    fd = base::UniqueFd(::openat(fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_TRUE(fd.valid()) << i;
    struct stat status {};
    ASSERT_EQ(::fstat(fd.get(), &status), 0);
    EXPECT_EQ(status.st_mtim.tv_sec, 1600000000 + i);
  }
  struct stat link {};
  ASSERT_EQ(::fstatat(fd.get(), "link", &link, 0), 0);
  EXPECT_EQ(link.st_nlink, 2U);

  FakeWriter again;
  const auto stored = store_tree(again, place / "out", {});
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(stored->problems.empty());
  at = again.root();
  for (int i = 0; i < kDepth; ++i) {
    at = at->child(name);
    ASSERT_TRUE(at) << i;
    EXPECT_EQ(at->attributes.mtime.seconds, 1600000000 + i);
  }
  ASSERT_TRUE(at->child("bottom"));
  EXPECT_EQ(at->child("bottom")->data, "deep");
  EXPECT_EQ(at->child("link"), again.root()->child("top"));
}

}  // namespace
}  // namespace varve::testing
