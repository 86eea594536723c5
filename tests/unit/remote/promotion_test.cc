// SPDX-License-Identifier: Apache-2.0
// A folder that is attached for reading takes over the writing in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "remote/bucket_config.h"
#include "remote/head.h"
#include "store/superblock_text.h"
#include "stored_catalog.h"
#include "varve/remote_folder.h"
#include "world.h"

namespace varve::test {
namespace {

class ReplicaPromotion : public testing::TestWithParam<std::tuple<bool, Placement>> {
 protected:
  ReplicaPromotion() : world_(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam())) {
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(10));
    world_.store("v2", tree_of(11));
    world_.arrange();
    must(attach(AttachRole::kReads));
  }

  Result<void> attach(AttachRole role, const OpenOptions& options) {
    return repo::attach_to_store({.place = "s3://memory/p", .cache_bytes = 0}, keeper_, options,
                                 hooks_, role);
  }
  Result<void> attach(AttachRole role) { return attach(role, world_.options(true)); }
  Result<void> promote(bool accept_older = false) {
    auto options = world_.options(true);
    options.accept_older = accept_older;
    return attach(AttachRole::kWrites, options);
  }
  std::unique_ptr<Repository> open(const std::string& folder, bool read_only = false) {
    return must(repo::RepositoryImpl::open(folder, world_.options(read_only), world_.hooks()));
  }
  Versions versions(bool read_only) { return World::read_all_versions(*open(keeper_, read_only)); }
  Result<void> store(const std::string& folder_path, const std::string& name, const Tree& tree) {
    const auto repository = open(folder_path);
    const auto id = must(repository->find_series("s")).id;
    const auto number = must(repository->open_version(id, name, folder())).number;
    for (const auto& [file, bytes] : tree) {
      write_file(*must(repository->writer(id)), kRootIno, file, bytes);
    }
    must(repository->seal(id, number, ""));
    return repository->close();
  }
  bool reads_only() {
    const auto files = must(store::open_folder(keeper_, true));
    return must(remote::read_config(*files, keeper_))->reads_only;
  }
  // Makes requests of the next attaches fail.
  void fail(const MemoryBucket::Faults& faults) {
    hooks_.open = [this,
                   faults](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
      used_ = std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
      used_->set_faults(faults);
      return std::unique_ptr<bucket::Bucket>(std::make_unique<LentBucket>(used_));
    };
  }
  void lose(const std::string& part) {
    std::erase_if(world_.objects().objects,
                  [&](const auto& one) { return one.first.find(part) != std::string::npos; });
  }
  void lose_head(const std::string& name) {
    world_.objects().objects.erase(name);
    world_.objects().objects.erase(name + ".copy");
  }
  void check(const std::string& folder_path) {
    const auto repository = open(folder_path);
    const auto report = must(repository->check({}, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
    must(repository->close());
  }
  std::set<std::string> series_versions(Repository& repository) {
    std::set<std::string> names;
    const auto id = must(repository.find_series("s")).id;
    for (const auto& version : must(repository.versions(id))) names.insert(version.name);
    return names;
  }

  // Returns the records of the keeper's catalog, and those that the newest head names.
  StoredRecords records() {
    std::uint64_t commit = 0;
    return records_here(keeper_, commit);
  }
  StoredRecords records_of_head() {
    auto records = test::records_of_head(world_, newest_head(world_));
    std::erase_if(records,
                  [](const auto& one) { return one.first.first == remote::kObjectsTable; });
    return records;
  }

  World world_;
  const std::string keeper_ = world_.path() + "-keeper";
  remote::BucketHooks hooks_ = world_.hooks();
  std::shared_ptr<MemoryBucket> used_;
};

TEST_P(ReplicaPromotion, AStaleKeeperFollowsAndWrites) {
  world_.store("v3", tree_of(12));
  must(promote());
  EXPECT_FALSE(reads_only());
  auto expected = world_.local();
  EXPECT_TRUE(versions(false) == expected);
  must(promote());  // Nothing is left to do.
  must(store(keeper_, "v4", tree_of(12)));
  expected["v4"] = tree_of(12);
  EXPECT_TRUE(versions(false) == expected);
  check(keeper_);
  EXPECT_TRUE(world_.attached() == expected);
  EXPECT_EQ(code_of(store(world_.path(), "late", tree_of(30))), ErrorCode::kLocked);
  EXPECT_TRUE(world_.attached() == expected);
  world_.expect_chain();
}

// The open version is only on the writer's machine. An interrupted promotion drops it from the
// keeper's catalog, and the next one must still drop it from the store's.
TEST_P(ReplicaPromotion, InterruptedAtAnyRequestItIsRepeated) {
  world_.store("v3", tree_of(12));
  {
    const auto repository = open(world_.path());
    const auto id = must(repository->find_series("s")).id;
    must(repository->open_version(id, "open", folder()));
    must(repository->close());
  }
  const auto objects = world_.objects().objects;
  const auto kept = keeper_ + "-kept";
  std::filesystem::copy(keeper_, kept, std::filesystem::copy_options::recursive);
  std::uint64_t tried = 0;
  for (const auto fault : {Fault::kBefore, Fault::kLost, Fault::kLater}) {
    // Each request, by one of the faults.
    for (auto at = static_cast<std::uint64_t>(fault) - 1;; at += 3) {
      SCOPED_TRACE(std::to_string(static_cast<int>(fault)) + " at " + std::to_string(at));
      world_.objects().objects = objects;
      std::filesystem::remove_all(keeper_);
      std::filesystem::copy(kept, keeper_, std::filesystem::copy_options::recursive);
      std::uint64_t requests = 0;
      bool failed = false;
      fail([&](std::uint64_t, bucket::RequestKind, const std::string&) {
        if (requests++ != at) return Fault::kNone;
        failed = true;
        return fault;
      });
      auto taken = promote();
      used_->apply_late();
      ++tried;
      if (!taken) {
        EXPECT_TRUE(reads_only());
        EXPECT_TRUE(versions(true) == world_.local());
        for (int attempts = 0; !taken && attempts < 3; ++attempts) {
          taken = promote();
          used_->apply_late();
        }
      }
      must(taken);
      EXPECT_FALSE(reads_only());
      EXPECT_TRUE(versions(false) == world_.local());
      must(store(keeper_, "v4", tree_of(13)));
      const auto fresh = world_.path() + "-fresh";
      must(repo::attach_to_store({.place = "s3://memory/p"}, fresh, world_.options(true),
                                 world_.hooks(), AttachRole::kReads));
      EXPECT_EQ(series_versions(*open(fresh, true)),
                (std::set<std::string>{"v1", "v2", "v3", "v4"}));
      std::filesystem::remove_all(fresh);
      if (!failed) break;
    }
  }
  EXPECT_GT(tried, 15U);
}

// The store fails from the creation of the head on, so the promotion cannot undo its changes. The
// next reader does, before it follows the writer.
TEST_P(ReplicaPromotion, TheNextReaderHasTheCatalogOfTheStore) {
  {
    const auto repository = open(world_.path());
    const auto id = must(repository->find_series("s")).id;
    must(repository->open_version(id, "open", folder()));
    must(repository->close());
  }
  bool failed = false;
  fail([&](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
    const bool is_head =
        kind == bucket::RequestKind::kPut && name.find("/head/") != std::string::npos;
    failed = failed || is_head;
    return failed ? Fault::kBefore : Fault::kNone;
  });
  EXPECT_EQ(code_of(promote()), ErrorCode::kUnavailable);
  ASSERT_TRUE(failed);
  EXPECT_TRUE(reads_only());
  open(keeper_, true);
  EXPECT_EQ(records(), records_of_head());
  {
    const auto repository = open(world_.path());
    const auto id = must(repository->find_series("s")).id;
    must(repository->seal(id, must(repository->find_version(id, "open")).number, ""));
    must(repository->close());
  }
  EXPECT_TRUE(versions(true) == World::read_all_versions(*open(world_.path(), true)));
  EXPECT_EQ(records(), records_of_head());
}

TEST_P(ReplicaPromotion, TheWriterMayBeFaster) {
  bool done = false;
  fail([&](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
    const bool is_head =
        kind == bucket::RequestKind::kPut && name.find("/head/") != std::string::npos;
    if (is_head && !std::exchange(done, true)) world_.store("v3", tree_of(12));
    return Fault::kNone;
  });
  EXPECT_EQ(code_of(promote()), ErrorCode::kLocked);
  ASSERT_TRUE(done);
  EXPECT_TRUE(reads_only());
  EXPECT_TRUE(versions(true) == world_.local());
  EXPECT_TRUE(must(RemoteFolder(keeper_, true).info())->fenced.empty());
  world_.store("v4", tree_of(13));
  must(promote());
  EXPECT_TRUE(versions(false) == world_.local());
  EXPECT_EQ(code_of(store(world_.path(), "v5", tree_of(14))), ErrorCode::kLocked);
  world_.expect_chain();
}

// The keeper has not seen the newest head, and the store has lost it.
TEST_P(ReplicaPromotion, ALostNewerHeadNeedsTheLoudWord) {
  const auto expected = world_.local();
  world_.store("v3", tree_of(12));
  const auto newest = *world_.heads().rbegin();
  world_.objects().objects.at(newest).bytes[40] ^= std::byte{1};
  world_.objects().objects.erase(newest + ".copy");
  const auto before = world_.objects().objects.size();
  const auto refused = promote();
  EXPECT_EQ(code_of(refused), ErrorCode::kCorrupt);
  EXPECT_NE(refused.error().message().find("--accept-older"), std::string::npos)
      << refused.error().message();
  EXPECT_EQ(world_.objects().objects.size(), before);
  EXPECT_TRUE(reads_only());
  must(promote(true));
  EXPECT_GT(*world_.heads().rbegin(), newest);
  EXPECT_TRUE(versions(false) == expected);
  // The writer, which knows the lost head, writes nothing more.
  const auto taken = world_.objects().objects.size();
  EXPECT_FALSE(store(world_.path(), "late", tree_of(30)));
  EXPECT_EQ(world_.objects().objects.size(), taken);
}

// The store was put back to an older state, and the keeper has the newer one.
TEST_P(ReplicaPromotion, AKeeperNewerThanTheStoreNeedsTheLoudWord) {
  const auto older = world_.objects().objects;
  world_.erase({"v1"});
  EXPECT_TRUE(versions(true) == world_.local());
  auto& objects = world_.objects().objects;
  const auto newest = *world_.heads().rbegin();
  std::erase_if(objects, [&](const auto& one) {
    return one.first.find("/seg/") == std::string::npos && !older.contains(one.first);
  });
  ASSERT_FALSE(world_.heads().contains(newest));
  EXPECT_EQ(code_of(promote()), ErrorCode::kCorrupt);
  EXPECT_TRUE(reads_only());
  must(promote(true));
  EXPECT_GT(*world_.heads().rbegin(), newest);
  EXPECT_TRUE(versions(false) == world_.local());
  // Lost small files are uploaded again by the repair of the folder.
  EXPECT_EQ(world_.attached(), world_.local());
}

// The catalog objects of the state, and all heads but the newest one, are lost. The keeper has the
// whole catalog, and writes it again.
TEST_P(ReplicaPromotion, LostCatalogObjectsComeBack) {
  const auto newest = *world_.heads().rbegin();
  lose("/cat/");
  for (const auto& head : world_.heads()) {
    if (head != newest) lose_head(head);
  }
  must(promote());
  EXPECT_TRUE(versions(false) == world_.local());
  EXPECT_TRUE(world_.attached() == world_.local());
}

TEST_P(ReplicaPromotion, AnotherHistoryIsRefused) {
  world_.store("v3", tree_of(12));
  EXPECT_TRUE(versions(true) == world_.local());
  lose_head(*world_.heads().rbegin());
  const auto second = world_.path() + "-second";
  auto options = world_.options(true);
  options.accept_older = true;
  must(repo::attach_to_store({.place = "s3://memory/p"}, second, options, world_.hooks(),
                             AttachRole::kWrites));
  must(store(second, "other", tree_of(40)));
  const auto expected = world_.attached();
  for (const bool accept_older : {false, true}) {
    EXPECT_EQ(code_of(promote(accept_older)), ErrorCode::kCorrupt);
    EXPECT_TRUE(reads_only());
  }
  EXPECT_TRUE(world_.attached() == expected);
}

TEST_P(ReplicaPromotion, AnotherPlaceIsRefused) {
  EXPECT_EQ(code_of(repo::attach_to_store({.place = "s3://memory/q"}, keeper_, world_.options(true),
                                          hooks_, AttachRole::kWrites)),
            ErrorCode::kExists);
  EXPECT_TRUE(reads_only());
}

// The machine remembers the sequence number of a state that the store had once.
TEST_P(ReplicaPromotion, ARememberedStateRefuses) {
  if (!std::get<0>(GetParam())) GTEST_SKIP() << "a plain repository has no sequence number";
  auto options = world_.options();
  options.memory_folder = world_.path() + "-state";
  const auto older = world_.objects().objects;
  {
    const auto repository =
        must(repo::RepositoryImpl::open(world_.path(), options, world_.hooks()));
    const auto id = must(repository->find_series("s")).id;
    must(repository->rename_version(id, must(repository->find_version(id, "v1")).number, "first"));
    must(repository->close());
  }
  world_.objects().objects = older;
  options.read_only = true;
  EXPECT_EQ(code_of(attach(AttachRole::kWrites, options)), ErrorCode::kCorrupt);
  EXPECT_TRUE(reads_only());
  options.accept_older = true;
  must(attach(AttachRole::kWrites, options));
}

INSTANTIATE_TEST_SUITE_P(All, ReplicaPromotion,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Placement::kLineage, Placement::kPool)));

}  // namespace
}  // namespace varve::test
