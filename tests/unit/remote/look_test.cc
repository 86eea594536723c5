// SPDX-License-Identifier: Apache-2.0
// An attached folder is opened as it is while the store is asked for a newer head.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "world.h"

namespace varve::test {
namespace {

class ReplicaLook : public testing::TestWithParam<bool> {
 protected:
  ReplicaLook() : world_(GetParam(), Mishap::kNone, 0) {
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(1));
    hooks_ = world_.hooks();
    hooks_.open = [this](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
      auto bucket = std::make_unique<MemoryBucket>(world_.shared_objects(), "p/");
      bucket->set_faults([this](std::uint64_t, bucket::RequestKind kind, const std::string&) {
        if (kind == bucket::RequestKind::kList) ++lists_;
        return fails_ ? Fault::kBefore : Fault::kNone;
      });
      return std::unique_ptr<bucket::Bucket>(std::move(bucket));
    };
    attach(reader_);
    lists_ = 0;
  }

  void attach(const std::string& folder) {
    must(repo::attach_to_store({.place = "s3://memory/p"}, folder, world_.options(true), hooks_));
  }
  /// Opens the attached folder, and announces reads of the newest version that it has.
  Result<std::unique_ptr<Repository>> open() {
    auto options = world_.options(true);
    announced_.clear();
    options.announce = [this](Repository& repository) {
      ++calls_;
      repository.will_read_once();
      const auto series = must(repository.find_series("s")).id;
      for (const auto& version : must(repository.versions(series))) {
        announced_.push_back(version.name);
        const auto reader = must(repository.reader(series, version.number));
        reader->will_read_all();
      }
    };
    return repo::RepositoryImpl::open(reader_, options, hooks_);
  }

  World world_;
  const std::string reader_ = world_.path() + "-reader";
  remote::BucketHooks hooks_;
  std::atomic<bool> fails_ = false;
  std::atomic<int> lists_ = 0;
  int calls_ = 0;
  std::vector<std::string> announced_;
};

TEST_P(ReplicaLook, TheFolderHasTheNewestHead) {
  const auto repository = must(open());
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(lists_, 1) << "reads wait for no list of their own";
  EXPECT_EQ(World::read_all_versions(*repository), world_.local());
  EXPECT_TRUE(must(repository->check({}, {})).damages.empty());
}

TEST_P(ReplicaLook, ANewerHeadIsShown) {
  world_.store("v2", tree_of(2));
  const auto repository = must(open());
  EXPECT_EQ(announced_, std::vector<std::string>{"v1"});
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(lists_, 1) << "the look's answer serves the opening that follows";
  EXPECT_EQ(World::read_all_versions(*repository), world_.local());
}

TEST_P(ReplicaLook, AnnouncedVersionsMayBeGoneAndMoved) {
  for (std::uint64_t i = 2; i < 6; ++i) {
    world_.store("v" + std::to_string(i), tree_of(i));
    if (i % 2 == 0) world_.erase({"v" + std::to_string(i - 1)});
    world_.arrange();
    EXPECT_EQ(World::read_all_versions(*must(open())), world_.local()) << i;
  }
}

TEST_P(ReplicaLook, AStoreThatDoesNotAnswerLeavesTheFolderAsItIs) {
  const auto before = World::read_all_versions(
      *must(repo::RepositoryImpl::open(reader_, world_.options(true), hooks_)));
  world_.store("v2", tree_of(2));
  fails_ = true;
  const auto repository = must(open());
  const auto series = must(repository->find_series("s")).id;
  EXPECT_EQ(must(repository->versions(series)).size(), 1U);
  fails_ = false;
  EXPECT_EQ(before.size(), 1U);
}

TEST_P(ReplicaLook, AStoreWithoutTheKnownHeadIsAnError) {
  {
    const std::lock_guard lock(world_.shared_objects()->mutex);
    std::erase_if(world_.shared_objects()->objects, [](const auto& entry) {
      return entry.first.find("/head/") != std::string::npos;
    });
  }
  const auto ordinary = repo::RepositoryImpl::open(reader_, world_.options(true), hooks_);
  const auto looked = open();
  ASSERT_FALSE(ordinary);
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code(), ordinary.error().code());
  EXPECT_EQ(looked.error().message(), ordinary.error().message());
}

TEST_P(ReplicaLook, AFolderThatCannotBeOpenedAsItIsIsBroughtUpToDateFirst) {
  // A crash between the new objects and the new catalog: the state has no catalog to open.
  std::filesystem::remove_all(reader_ + "/catalog");
  const auto ordinary = repo::RepositoryImpl::open(reader_, world_.options(true), hooks_);
  std::filesystem::remove_all(reader_ + "/catalog");
  const auto looked = open();
  EXPECT_EQ(calls_, 0);
  ASSERT_EQ(looked.has_value(), ordinary.has_value());
  if (!looked) {
    EXPECT_EQ(looked.error().message(), ordinary.error().message());
  }
}

TEST_P(ReplicaLook, WritersDoNotLook) {
  auto options = world_.options(true);
  options.announce = [this](Repository&) { ++calls_; };
  const auto repository = must(repo::RepositoryImpl::open(world_.path(), options, hooks_));
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(World::read_all_versions(*repository), world_.local());
}

INSTANTIATE_TEST_SUITE_P(Plain, ReplicaLook, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ReplicaLook, testing::Values(true));

}  // namespace
}  // namespace varve::test
