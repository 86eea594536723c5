// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include "fs/node_table.h"
#include "fs/rank_set.h"
#include "fs/sealed_removals.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/repository.h"

namespace varve::fs {
namespace {

using test::must;
using What = SealedRemovals::What;

TEST(RankSet, MergesNeighboursInAnyOrder) {
  RankSet set;
  for (const Rank rank : {5, 3, 9, 4, 5, 8}) set.insert(rank);
  EXPECT_EQ(set.ranges(), 2U);
  const std::set<Rank> in{3, 4, 5, 8, 9};
  for (Rank rank = 0; rank < 12; ++rank) EXPECT_EQ(set.contains(rank), in.contains(rank)) << rank;
  set.insert(7);
  set.insert(6);
  EXPECT_EQ(set.ranges(), 1U);
}

/// A sealed version with the file "f" and the directory "d", which holds "g".
class Removals : public testing::Test {
 protected:
  Removals() {
    must(Repository::create(path_, {}));
    repository_ = must(Repository::open(path_, {}));
    series_ = must(repository_->create_series("s"));
    const NewFile folder{.mode = S_IFDIR | 0755, .symlink_target = {}};
    const NewFile file{.mode = S_IFREG | 0644, .symlink_target = {}};
    auto info = must(repository_->open_version(series_.id, "v", folder));
    const auto writer = must(repository_->writer(series_.id));
    must(writer->create(kRootIno, "f", file));
    must(writer->create(must(writer->create(kRootIno, "d", folder)).ino, "g", file));
    number_ = must(repository_->seal(series_.id, info.number, "")).info.number;
    nodes_ = std::make_unique<NodeTable>(*repository_);
    ShowOptions show;
    show.rm_deletes_s = 60;
    removals_ = std::make_unique<SealedRemovals>(*repository_, show, [this] { return now_; });
    root_.kind = Node::Kind::kSealed;
    root_.reader = must(repository_->reader(series_.id, number_));
    root_.slot = &nodes_->slots().version(series_, number_);
  }
  ~Removals() override {
    root_.reader.reset();
    nodes_->slots().drop_all();
    repository_.reset();
  }

  Node below(std::string_view name) {
    Node node = root_;
    node.rank = must(root_.reader->lookup(0, name)).rank;
    return node;
  }
  bool hides(const char* name) { return removals_->hides(*root_.slot, below(name).rank); }
  ErrorCode refusal(const Node& directory, const char* name, What what) {
    const auto removed = removals_->remove(directory, name, what);
    if (removed) throw std::runtime_error("a refusal was expected");
    return removed.error().code();
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/r";
  std::unique_ptr<Repository> repository_;
  SeriesInfo series_;
  VersionNumber number_{};
  std::unique_ptr<NodeTable> nodes_;
  SealedRemovals::Clock::time_point now_{std::chrono::hours(1)};
  std::unique_ptr<SealedRemovals> removals_;
  Node root_;
};

TEST_F(Removals, RemovedNamesReturnOnceNothingIsRemovedForTheTime) {
  ASSERT_TRUE(removals_->remove(root_, "f", What::kFile));
  EXPECT_EQ(refusal(root_, "f", What::kFile), ErrorCode::kNotFound);
  now_ += std::chrono::seconds(59);
  EXPECT_TRUE(hides("f"));
  ASSERT_TRUE(removals_->remove(below("d"), "g", What::kFile));
  now_ += std::chrono::seconds(59);
  EXPECT_TRUE(hides("f"));
  now_ += std::chrono::seconds(1);
  EXPECT_FALSE(hides("f"));
  EXPECT_FALSE(removals_->is_under_way(*root_.slot));
  EXPECT_FALSE(must(removals_->is_empty(*root_.slot, *root_.reader, below("d").rank)));
}

TEST_F(Removals, DirectoriesGoOnlyWhenEmpty) {
  EXPECT_EQ(refusal(root_, "d", What::kDirectory), ErrorCode::kNotEmpty);
  EXPECT_EQ(refusal(root_, "d", What::kFile), ErrorCode::kIsDirectory);
  EXPECT_EQ(refusal(root_, "f", What::kDirectory), ErrorCode::kNotDirectory);
  EXPECT_EQ(refusal(root_, "none", What::kFile), ErrorCode::kNotFound);
  EXPECT_FALSE(removals_->is_under_way(*root_.slot));
  ASSERT_TRUE(removals_->remove(below("d"), "g", What::kFile));
  ASSERT_TRUE(removals_->remove(root_, "d", What::kDirectory));
  EXPECT_FALSE(must(removals_->is_empty(*root_.slot, *root_.reader, 0)));
  ASSERT_TRUE(removals_->remove(root_, "f", What::kFile));
  EXPECT_TRUE(must(removals_->is_empty(*root_.slot, *root_.reader, 0)));
}

TEST_F(Removals, DirectoryThatComesBackHasAnotherGeneration) {
  const Rank d = below("d").rank;
  const auto first = root_.slot->generation_of_directory(d);
  for (std::uint32_t times = 1; times <= SealedRemovals::kStoppedMax; ++times) {
    ASSERT_TRUE(removals_->remove(below("d"), "g", What::kFile));
    ASSERT_TRUE(removals_->remove(root_, "d", What::kDirectory));
    EXPECT_EQ(root_.slot->generation_of_directory(d), first + times - 1);
    now_ += std::chrono::seconds(60);
    EXPECT_FALSE(hides("d"));
    EXPECT_EQ(root_.slot->generation_of_directory(d), first + times);
  }
  EXPECT_EQ(root_.slot->generation_of_directory(0), first);
  EXPECT_EQ(refusal(root_, "f", What::kFile), ErrorCode::kNoSpace);
}

TEST_F(Removals, LockedVersionRefusesTheFirstRemoval) {
  ASSERT_TRUE(repository_->lock_version(series_.id, number_, Timestamp{4'000'000'000, 0}));
  EXPECT_EQ(refusal(root_, "f", What::kFile), ErrorCode::kNotPermitted);
  EXPECT_EQ(refusal(root_, "f", What::kFile), ErrorCode::kNotPermitted);
  EXPECT_FALSE(hides("f"));
}

TEST_F(Removals, BaseOfAnOpenVersionIsBusy) {
  must(repository_->clone_version(series_.id, number_, "w.partial"));
  EXPECT_EQ(refusal(root_, "f", What::kFile), ErrorCode::kBusy);
  const auto open = must(repository_->open_versions(series_.id));
  ASSERT_TRUE(repository_->abandon_version(series_.id, open.front().number, true));
  EXPECT_TRUE(removals_->remove(root_, "f", What::kFile));
}

}  // namespace
}  // namespace varve::fs
