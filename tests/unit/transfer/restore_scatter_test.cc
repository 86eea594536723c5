// SPDX-License-Identifier: Apache-2.0
// Restoring in the order of the disk gives the same trees as any other order.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "fake_version.h"
#include "file_tree.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

namespace fs = std::filesystem;

RestoreOptions scattered() {
  RestoreOptions options;
  options.scatter = true;
  return options;
}

std::string some_bytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(1 + random() % 255);
  return bytes;
}

/// Creates directories with files of all sizes. Some files have names in other directories, too.
FakeNodePtr make_tree(unsigned seed, int directories, int files) {
  std::mt19937_64 random(seed);
  auto root = make_directory();
  std::vector<FakeNodePtr> all;
  for (int d = 0; d < directories; ++d) {
    auto directory = make_directory();
    for (int f = 0; f < files; ++f) {
      const bool linked = !all.empty() && random() % 5 == 0;
      const auto node = linked ? all[random() % all.size()]
                               : make_file(some_bytes(random, random() % 3 == 0 ? random() % 200000
                                                                                : random() % 3000));
      all.push_back(node);
      directory->children.emplace_back("f" + std::to_string(1000 + f), node);
    }
    root->children.emplace_back("d" + std::to_string(1000 + d), directory);
  }
  return root;
}

/// Limits the open files, and so the size of batches, during its lifetime.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{count, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

void expect_same_as_in_tree_order(const FakeNodePtr& root, FakeReader& version,
                                  const TemporaryDirectory& place) {
  FakeReader other(root);
  const auto plain = restore_version(other, place / "plain", {}, {});
  ASSERT_TRUE(plain) << plain.error().message();
  const auto report = restore_version(version, place / "out", scattered(), {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->problems.empty()) << report->problems[0];
  EXPECT_EQ(report->entries, plain->entries);
  EXPECT_EQ(report->bytes, plain->bytes);
  EXPECT_EQ(describe_tree(place / "out"), describe_tree(place / "plain"));
}

TEST(RestoreScatter, ReadsAllOnceFromTheFrontOfTheDiskToItsBack) {
  const auto root = make_tree(1, 8, 20);
  FakeReader version(root);
  const TemporaryDirectory place;
  expect_same_as_in_tree_order(root, version, place);
  const auto& places = version.read_places();
  EXPECT_GT(places.size(), 3000U);
  EXPECT_TRUE(std::ranges::is_sorted(places));
  EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
}

TEST(RestoreScatter, SmallBatchesGiveTheSameTree) {
  const FewDescriptors few(256);
  const auto root = make_tree(2, 12, 20);
  FakeReader version(root);
  const TemporaryDirectory place;
  expect_same_as_in_tree_order(root, version, place);
  auto places = version.read_places();
  EXPECT_FALSE(std::ranges::is_sorted(places));
  std::ranges::sort(places);
  EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
}

TEST(RestoreScatter, FileOfMorePiecesThanABatchHolds) {
  std::mt19937_64 random(7);
  const std::string data = some_bytes(random, 600'000);
  auto root = make_directory();
  auto big = make_file(data);
  root->children = {{"a", make_file("a")}, {"big", big}, {"link", big}, {"z", make_file("z")}};
  for (const bool lost : {false, true}) {
    FakeReader version(root);
    if (lost) big->damaged = {{1000, 1001}, {599'000, 599'001}};
    const TemporaryDirectory place;
    RestoreOptions options = scattered();
    options.scatter_pieces = 100;
    const auto report = restore_version(version, place / "out", options, {});
    ASSERT_TRUE(report) << report.error().message();
    std::string expected = data;
    if (lost) expected[1000] = expected[599'000] = '\0';
    EXPECT_TRUE(read_file(place / "out/big") == expected);
    EXPECT_EQ(report->problems.size(), lost ? 2U : 0U);  // One for each name.
    EXPECT_TRUE(fs::equivalent(place / "out/big", place / "out/link"));
    EXPECT_EQ(read_file(place / "out/a") + read_file(place / "out/z"), "az");
    EXPECT_EQ(version.read_places().size(), 602U);
  }
}

TEST(RestoreScatter, DamageIsToldAndBoundedAsInAnyOrder) {
  std::mt19937_64 random(3);
  auto root = make_directory();
  for (int i = 0; i < 8; ++i) {
    auto file = make_file(some_bytes(random, 300'000));
    const std::uint64_t begin = random() % 200'000;
    if (i > 0) file->damaged.emplace_back(begin, begin + 1 + random() % 50'000);
    root->children.emplace_back("f" + std::to_string(i), file);
  }
  FakeReader plain(root);
  FakeReader version(root);
  const TemporaryDirectory place;
  auto expected = restore_version(plain, place / "plain", {}, {});
  auto report = restore_version(version, place / "out", scattered(), {});
  ASSERT_TRUE(expected && report);
  EXPECT_EQ(report->problems.size(), 7U);
  std::ranges::sort(report->problems);
  std::ranges::sort(expected->problems);
  EXPECT_EQ(report->problems, expected->problems);
  for (int i = 0; i < 8; ++i) {
    const std::string name = "/f" + std::to_string(i);
    EXPECT_TRUE(read_file(place / "out" + name) == read_file(place / "plain" + name)) << name;
  }
}

TEST(RestoreScatter, FileWhosePlacesAreLostIsReadInItsOrder) {
  const auto root = make_tree(4, 1, 6);
  FakeReader version(root);
  version.lose_places_of(3);
  const TemporaryDirectory place;
  expect_same_as_in_tree_order(root, version, place);
}

TEST(RestoreScatter, WhatStandsThereIsReplacedOrKeptWhole) {
  auto damaged = make_file("damaged");
  damaged->damaged = {{2, 3}};
  auto linked = make_file("linked");
  auto root = make_directory();
  root->children = {{"damaged", damaged},
                    {"f", make_file("new")},
                    {"l1", linked},
                    {"l2", linked},
                    {"same", make_file("same")}};
  const TemporaryDirectory place;
  FakeReader first(root);
  ASSERT_TRUE(restore_version(first, place.path(), {}, {}));
  fs::remove(place / "l2");
  for (const char* name : {"damaged", "f", "l1", "l2", "mine"}) write_file(place / name, "mine");
  RestoreOptions options = scattered();
  options.delete_others = true;
  FakeReader version(root);
  const auto report = restore_version(version, place.path(), options, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->problems.size(), 1U);
  EXPECT_EQ(report->unchanged, 1U);
  EXPECT_EQ(read_file(place / "damaged"), "mine");
  EXPECT_EQ(read_file(place / "f"), "new");
  EXPECT_EQ(read_file(place / "l1"), "linked");
  EXPECT_TRUE(fs::equivalent(place / "l1", place / "l2"));
  EXPECT_EQ(std::distance(fs::directory_iterator(place.path()), {}), 5);
}

TEST(RestoreScatter, DryRunReadsAndChangesNothing) {
  const auto root = make_tree(5, 2, 5);
  FakeReader version(root);
  const TemporaryDirectory place;
  RestoreOptions options = scattered();
  options.dry_run = true;
  const auto report = restore_version(version, place / "out", options, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(version.read_places().empty());
  EXPECT_FALSE(fs::exists(place / "out"));
}

TEST(RestoreScatter, InterruptedItLeavesNoHalfFileAndTheNextRunCompletes) {
  const auto root = make_tree(6, 4, 20);
  const TemporaryDirectory place;
  FakeReader whole(root);
  const auto plain = restore_version(whole, place / "plain", {}, {});
  ASSERT_TRUE(plain);
  for (const bool again_scattered : {false, true}) {
    const std::string out = place / (again_scattered ? "a" : "b");
    FakeReader version(root);
    const auto stopped = restore_version(
        version, out, scattered(),
        [&](const TransferProgress& done) { return done.bytes_done < plain->bytes / 2; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code(), ErrorCode::kInterrupted);
    for (const auto& [path, what] : describe_tree(out)) {
      if (!fs::is_regular_file(out + "/" + path) || path.starts_with(".varve")) continue;
      EXPECT_TRUE(read_file(out + "/" + path) == read_file(place / "plain/" + path)) << path;
    }
    RestoreOptions options;
    options.scatter = again_scattered;
    FakeReader next(root);
    const auto report = restore_version(next, out, options, {});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(report->resumed);
    EXPECT_EQ(describe_tree(out), describe_tree(place / "plain"));
  }
}

}  // namespace
}  // namespace varve::testing
