// SPDX-License-Identifier: Apache-2.0
// An attached folder that is open follows the heads, and counts its requests.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/checksum.h"
#include "remote/head.h"
#include "support/file_content.h"
#include "support/test_encryption.h"
#include "varve/arrange.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"
#include "world.h"

namespace varve::test {
namespace {

constexpr std::chrono::milliseconds kInterval{5};
constexpr std::chrono::seconds kPatience{60};

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return rest_of(in);
}

class ReplicaFollower : public testing::TestWithParam<bool> {
 protected:
  ReplicaFollower() : world_(GetParam(), Mishap::kNone, 0) {
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(1));
    hooks_ = world_.hooks();
    hooks_.open = [this](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
      auto bucket = std::make_unique<MemoryBucket>(world_.shared_objects(), "p/");
      bucket->set_faults([this](std::uint64_t, bucket::RequestKind, const std::string&) {
        if (!fails_) return Fault::kNone;
        ++failed_;
        return Fault::kBefore;
      });
      return std::unique_ptr<bucket::Bucket>(std::move(bucket));
    };
    must(repo::attach_to_store({.place = "s3://memory/p"}, reader_, world_.options(true), hooks_));
  }

  /// Returns whether the repository shows the versions of the writer in time.
  bool shows_all(Repository& repository) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      try {
        if (World::read_all_versions(repository) == world_.local()) return true;
      } catch (const std::runtime_error&) {  // A version was deleted meanwhile.
      }
      std::this_thread::sleep_for(kInterval);
    }
    return false;
  }

  World world_;
  const std::string reader_ = world_.path() + "-reader";
  remote::BucketHooks hooks_;
  std::atomic<bool> fails_ = false;
  std::atomic<int> failed_ = 0;
};

TEST_P(ReplicaFollower, OpenFolderShowsNewerVersions) {
  const auto repository = must(repo::RepositoryImpl::open(reader_, world_.options(true), hooks_));
  std::atomic<int> changes = 0;
  EXPECT_TRUE(must(repository->follow_store(kInterval, [&] { ++changes; })));
  const auto series = must(repository->find_series("s")).id;
  const auto first =
      must(repository->reader(series, must(repository->find_version(series, "v1")).number));
  for (std::uint64_t i = 2; i < 7; ++i) {
    world_.store("v" + std::to_string(i), tree_of(i));
    if (i > 3) world_.erase({"v" + std::to_string(i - 1)});
    world_.arrange();
    EXPECT_TRUE(shows_all(*repository)) << i;
    EXPECT_GE(changes, static_cast<int>(i) - 2) << "the change that is shown may still be told";
    // Its chunks were moved to other files meanwhile.
    for (const auto& [name, bytes] : tree_of(1)) EXPECT_EQ(read_sealed(*first, name), bytes);
  }
  EXPECT_TRUE(must(repository->check({}, {})).damages.empty());
}

TEST_P(ReplicaFollower, FailingStoreLeavesTheFolderAsItWas) {
  const auto repository = must(repo::RepositoryImpl::open(reader_, world_.options(true), hooks_));
  const auto before = World::read_all_versions(*repository);
  fails_ = true;
  EXPECT_TRUE(must(repository->follow_store(kInterval, {})));
  world_.store("v2", tree_of(2));
  constexpr int kLooks = 5;
  while (failed_ < kLooks) std::this_thread::sleep_for(kInterval);
  EXPECT_EQ(World::read_all_versions(*repository), before);
  fails_ = false;
  EXPECT_TRUE(shows_all(*repository));
}

TEST_P(ReplicaFollower, RequestsOutliveTheProcess) {
  const auto gets = [&] {
    const auto usage = must(RemoteFolder(reader_).usage());
    for (const auto& one : usage->requests) {
      if (one.kind == "get") return one.requests;
    }
    return std::uint64_t{0};
  };
  const auto attached = gets();
  EXPECT_GT(attached, 2U);
  {
    const auto repository = must(repo::RepositoryImpl::open(reader_, world_.options(true), hooks_));
    EXPECT_EQ(World::read_all_versions(*repository), world_.local());
  }
  EXPECT_GT(gets(), attached);
  EXPECT_GT(must(RemoteFolder(reader_).usage())->bytes, 0U);
}

// Such as after a kill between the two writes.
TEST_P(ReplicaFollower, AnOlderSuperblockIsReplacedByTheHeads) {
  const auto name = reader_ + "/varve.repo";
  const auto before = file_text(name);
  must(world_.with([](Repository& repository) {
    auto settings = must(repository.arrange_settings());
    settings.delta = 1;
    must(repository.set_arrange_settings(settings));
  }));
  const auto look = [&] {
    const auto repository = must(repo::RepositoryImpl::open(reader_, world_.options(true), hooks_));
    EXPECT_EQ(World::read_all_versions(*repository), world_.local());
  };
  look();
  const auto after = file_text(name);
  ASSERT_NE(after, before);
  std::ofstream(name, std::ios::trunc | std::ios::binary) << before;
  look();
  EXPECT_EQ(file_text(name), after);
}

// The objects of a newer format may decode, and mean something else.
TEST_P(ReplicaFollower, AHeadOfANewerFormatIsNotApplied) {
  const auto name = reader_ + "/varve.repo";
  const auto before = file_text(name);
  auto& objects = world_.objects().objects;
  const auto newest = objects.at(*world_.heads().rbegin());
  const auto text = std::string(base::as_text(newest.bytes));
  auto head = must(remote::decode_head(text));
  const std::string list = "features_required = ";
  auto lines = head.superblock.substr(0, head.superblock.rfind("checksum = "));
  lines.insert(lines.find(list) + list.size(), "tides ");
  head.superblock =
      lines + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(lines)));
  head.previous = remote::digest_of(text);
  ++head.number;
  const auto keys = keys_of(reader_);
  const auto next = remote::encode_head(head, keys.get());
  auto object = newest;
  object.bytes.assign(base::as_bytes(next).begin(), base::as_bytes(next).end());
  objects["p/" + remote::head_name(head.repository_id, head.number)] = object;

  const auto opened = repo::RepositoryImpl::open(reader_, world_.options(true), hooks_);
  EXPECT_EQ(code_of(opened), ErrorCode::kUnsupported);
  EXPECT_EQ(file_text(name), before);
}

INSTANTIATE_TEST_SUITE_P(Plain, ReplicaFollower, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ReplicaFollower, testing::Values(true));

}  // namespace
}  // namespace varve::test
