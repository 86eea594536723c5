// SPDX-License-Identifier: Apache-2.0
// Several folders of one repository in an object store: two that write, and those that read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "remote/attachment.h"
#include "remote/check_store.h"
#include "remote/lease.h"
#include "support/repeated_random.h"
#include "support/sealed_pairs.h"
#include "support/test_keys.h"
#include "varve/remote_folder.h"
#include "world.h"

namespace varve::test {
namespace {

// Stores a version from a folder, and returns the result of closing it.
Result<void> store_from(World& world, const std::string& folder_path, const std::string& name) {
  const auto repository =
      must(repo::RepositoryImpl::open(folder_path, world.options(), world.hooks()));
  const auto id = must(repository->find_series("s")).id;
  const auto number = must(repository->open_version(id, name, folder())).number;
  write_file(*must(repository->writer(id)), kRootIno, "a", noise(50'000, 99));
  must(repository->seal(id, number, ""));
  return repository->close();
}

class ReplicaWriters : public testing::TestWithParam<bool> {
 protected:
  ReplicaWriters() : world_(GetParam(), Mishap::kNone, 0) {
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(1));
  }
  World world_;
};

TEST_P(ReplicaWriters, SecondRepositoryInTheSamePlaceIsRefused) {
  const auto other = world_.path() + "-other";
  EXPECT_EQ(code_of(repo::create_in_store({.place = "s3://memory/p"}, other,
                                          small_chunks(Codec::kNone), {}, world_.hooks())),
            ErrorCode::kExists);
}

/// Notes the greatest number of objects of the catalog that are read at once.
class WatchedReads final : public LentBucket {
 public:
  WatchedReads(std::shared_ptr<MemoryBucket> bucket, std::size_t& most)
      : LentBucket(std::move(bucket)), most_(most) {}
  void read_many(std::vector<bucket::ObjectRead> reads, bucket::ReadCompletion done) override {
    std::size_t count = 0;
    for (const auto& one : reads) count += one.name.find("/cat/") != std::string::npos;
    most_ = std::max(most_, count);
    LentBucket::read_many(std::move(reads), std::move(done));
  }

 private:
  std::size_t& most_;
};

TEST_P(ReplicaWriters, CheckReadsObjectsOfTheCatalogAtOnce) {
  world_.hooks().delta_bytes_min = 1U << 20;  // No new base.
  for (std::uint64_t i = 2; i < 8; ++i) world_.store("v" + std::to_string(i), tree_of(i));
  const auto objects = world_.names_with("/cat/").size();
  ASSERT_GT(objects, 5U);
  std::size_t most = 0;
  auto hooks = world_.hooks();
  hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    auto memory = std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
    return std::unique_ptr<bucket::Bucket>(std::make_unique<WatchedReads>(std::move(memory), most));
  };
  const auto check = must(remote::check_objects(world_.path(), world_.options(true), hooks, true));
  EXPECT_TRUE(check.damages.empty());
  EXPECT_GE(check.objects_read, objects);
  EXPECT_GT(most, 5U);
}

TEST_P(ReplicaWriters, OlderCopyOfTheFolderIsFenced) {
  const auto copy = world_.path() + "-copy";
  copy_crashed(world_.path(), copy);
  world_.store("v2", tree_of(2));
  const auto stored = store_from(world_, copy, "other");
  EXPECT_EQ(code_of(stored), ErrorCode::kLocked);
  EXPECT_NE(stored.error().message().find("another folder writes"), std::string::npos);
  // The fenced folder keeps its version, and the first one goes on.
  EXPECT_EQ(World::read_all_versions(
                *must(repo::RepositoryImpl::open(copy, world_.options(true), world_.hooks())))
                .count("other"),
            1U);
  world_.store("v3", tree_of(3));
  world_.expect_chain();
}

// A store whose condition is not atomic acknowledges one head to two writers.
TEST_P(ReplicaWriters, ReplacedHeadIsNoticedBeforeTheNextOne) {
  const auto copy = world_.path() + "-copy";
  copy_crashed(world_.path(), copy);
  world_.store("v2", tree_of(2));
  const auto newest_head = [&] {
    auto names = world_.names_with("/head/");
    std::erase_if(names, [](const std::string& name) { return name.ends_with(".copy"); });
    return *names.rbegin();
  };
  const auto head = newest_head();
  auto& objects = world_.shared_objects()->objects;
  const auto own = objects.extract(head);
  objects.erase(head + ".copy");
  must(store_from(world_, copy, "other"));
  ASSERT_NE(objects.at(head).bytes, own.mapped().bytes);
  const auto stored = store_from(world_, world_.path(), "v3");
  EXPECT_EQ(code_of(stored), ErrorCode::kLocked);
  EXPECT_NE(stored.error().message().find("can be missing there"), std::string::npos);
  const auto info = must(RemoteFolder(world_.path(), true).info());
  ASSERT_FALSE(info->abilities.empty());
  EXPECT_EQ(info->abilities.front().value, "ignored");
  EXPECT_EQ(newest_head(), head) << "no head follows the replaced one";
}

/// Does something before its first put, once.
class InterruptedPuts final : public LentBucket {
 public:
  InterruptedPuts(std::shared_ptr<MemoryBucket> bucket, std::function<void()>& before)
      : LentBucket(std::move(bucket)), before_(before) {}
  Result<void> put(const std::string& name, std::span<const std::span<const std::byte>> parts,
                   const bucket::PutOptions& options) override {
    if (const auto before = std::exchange(before_, nullptr)) before();
    return LentBucket::put(name, parts, options);
  }

 private:
  std::function<void()>& before_;
};

// Both futures of a virtual machine that goes back to a snapshot have the same holder and the same
// random bytes. The slower one has looked for newer heads before the faster one creates its head.
TEST_P(ReplicaWriters, FuturesOfOneSnapshotOverwriteNoObject) {
  const auto copy = world_.path() + "-copy";
  copy_crashed(world_.path(), copy);
  std::map<std::string, std::vector<std::byte>> of_winner;
  std::function<void()> win = [&] {
    const RepeatedRandom repeated;
    world_.store("v2", tree_of(2));
    for (const auto& [name, object] : world_.objects().objects) of_winner[name] = object.bytes;
  };
  auto hooks = world_.hooks();
  hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    auto memory = std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
    return std::unique_ptr<bucket::Bucket>(
        std::make_unique<InterruptedPuts>(std::move(memory), win));
  };
  {
    const RepeatedRandom repeated;
    const auto loser = must(repo::RepositoryImpl::open(copy, world_.options(), hooks));
    const auto id = must(loser->find_series("s")).id;
    const auto number = must(loser->open_version(id, "other", folder())).number;
    write_file(*must(loser->writer(id)), kRootIno, "a", noise(150'000, 99));
    must(loser->seal(id, number, ""));
    EXPECT_EQ(code_of(loser->close()), ErrorCode::kLocked);
  }
  ASSERT_FALSE(of_winner.empty());
  EXPECT_GT(world_.objects().objects.size(), of_winner.size()) << "the loser uploaded nothing";
  for (const auto& [name, bytes] : of_winner) {
    const auto found = world_.objects().objects.find(name);
    ASSERT_NE(found, world_.objects().objects.end()) << name;
    EXPECT_TRUE(found->second.bytes == bytes) << name << " was overwritten";
  }
  world_.expect_versions();
}

TEST(ReplicaLease, RandomBytesThatRepeatSealNoTwoLeasesAlike) {
  const SealedPairs pairs;
  const RepeatedRandom repeated;
  const auto keys = test_keys();
  for (const std::int64_t since : {1, 2}) {
    const remote::Lease lease{.host = "h", .user = "u", .folder = "f", .since_s = since};
    const auto text = must(remote::encode_lease(lease, keys.get()));
    EXPECT_EQ(must(remote::decode_lease(text, keys.get())).since_s, since);
  }
  EXPECT_EQ(pairs.counts().texts, 2U);
  EXPECT_EQ(pairs.counts().repeated, 0U);
}

// The heads of the new repository have other names, so no request of the old folder fails.
TEST_P(ReplicaWriters, PlaceThatWasMadeAgainIsToldAndNothingIsLost) {
  world_.store("v2", tree_of(2));
  const auto unused = world_.path() + "-unused";  // A folder that has not replicated yet.
  for (const bool has_heads : {true, false}) {
    world_.objects().objects.clear();
    auto old = world_.path();
    if (!has_heads) {
      old = unused;
      must(repo::create_in_store({.place = "s3://memory/p"}, old, small_chunks(Codec::kNone), {},
                                 world_.hooks()));
      must(repo::RepositoryImpl::open(old, quiet_options(), world_.hooks()));
      world_.objects().objects.clear();
    }
    const auto store = [&](const std::string& name) -> Result<void> {
      const auto repository =
          must(repo::RepositoryImpl::open(old, world_.options(), world_.hooks()));
      const auto found = repository->find_series("s");
      const auto id = found ? found->id : must(repository->create_series("s")).id;
      const auto number = must(repository->open_version(id, name, folder())).number;
      write_file(*must(repository->writer(id)), kRootIno, "a", noise(50'000, 99));
      must(repository->seal(id, number, ""));
      return repository->close();
    };
    const auto removed = store("removed");
    ASSERT_FALSE(removed);
    EXPECT_NE(removed.error().message().find("has no repository any more"), std::string::npos)
        << removed.error().message();
    EXPECT_TRUE(world_.objects().objects.empty());
    const auto other = world_.path() + (has_heads ? "-other" : "-another");
    must(repo::create_in_store({.place = "s3://memory/p"}, other, small_chunks(Codec::kNone), {},
                               world_.hooks()));
    const auto objects = world_.objects().objects.size();
    const auto again = store("again");
    EXPECT_EQ(code_of(again), ErrorCode::kLocked);
    EXPECT_NE(again.error().message().find("another repository was made"), std::string::npos)
        << again.error().message();
    EXPECT_EQ(world_.objects().objects.size(), objects);
    const auto kept = World::read_all_versions(
        *must(repo::RepositoryImpl::open(old, world_.options(true), world_.hooks())));
    EXPECT_TRUE(kept.contains("removed"));
    EXPECT_TRUE(kept.contains("again"));
    EXPECT_EQ(kept.contains("v2"), has_heads);
    const auto info = must(RemoteFolder(old, true).info());
    EXPECT_NE(info->fenced.find("another repository"), std::string::npos);
  }
}

// Another program, or an attacker, may write an object with the name of the next head.
TEST_P(ReplicaWriters, AnObjectThatIsNoHeadStopsTheUploadsUntilItIsRemoved) {
  auto name = *world_.heads().rbegin();
  name.back() = static_cast<char>(name.back() + 1);
  world_.objects().objects[name].bytes.resize(100);
  const auto stored = store_from(world_, world_.path(), "v2");
  EXPECT_EQ(code_of(stored), ErrorCode::kCorrupt);
  EXPECT_NE(stored.error().message().find(name.substr(name.find("/head/"))), std::string::npos);
  EXPECT_NE(stored.error().message().find("if none did, remove this object"), std::string::npos);
  EXPECT_EQ(must(RemoteFolder(world_.path(), true).info())->fenced, "");
  world_.objects().objects.erase(name);
  must(store_from(world_, world_.path(), "v3"));
  const auto found = world_.attached();
  EXPECT_TRUE(found.contains("v2"));
  EXPECT_TRUE(found.contains("v3"));
  world_.expect_chain();
}

TEST_P(ReplicaWriters, OnlyTheFirstOfTwoEqualFoldersGoesOn) {
  const auto copy = world_.path() + "-copy";
  copy_crashed(world_.path(), copy);
  must(store_from(world_, copy, "first"));
  EXPECT_EQ(code_of(store_from(world_, world_.path(), "second")), ErrorCode::kLocked);
  const auto found = world_.attached();
  EXPECT_TRUE(found.contains("first"));
  EXPECT_FALSE(found.contains("second"));
  world_.expect_chain();
}

TEST_P(ReplicaWriters, ObjectsAreRemovedADayAfterTheLastHeadNamedThem) {
  const auto has_data = [&](std::size_t count) {
    std::size_t found = 0;
    for (const auto& [name, object] : world_.objects().objects) {
      found += name.find("/seg/") != std::string::npos || name.find("/vol/") != std::string::npos;
    }
    EXPECT_EQ(found > count, true) << found;
    return found;
  };
  world_.store("v2", tree_of(20));
  world_.store("v3", tree_of(30));
  const auto before = has_data(0);
  world_.erase({"v1", "v2"});
  EXPECT_EQ(has_data(0), before);  // Readers of yesterday's heads still need them.
  world_.clock().seconds += 24 * 3600 + 1;
  world_.store("v4", tree_of(31));
  std::size_t left = 0;
  for (const auto& [name, object] : world_.objects().objects) {
    left += name.find("/seg/") != std::string::npos || name.find("/vol/") != std::string::npos;
  }
  EXPECT_LT(left, before + 2);
  world_.expect_versions();
}

// A clock that is wrong for one command does not take the day from readers, whether it is the
// machine's or the store's.
TEST_P(ReplicaWriters, AWrongClockRemovesNoObjectEarly) {
  world_.store("v2", tree_of(20));
  const auto before = world_.names_with("/seg/");
  const auto removed = [&] {
    const auto now = world_.names_with("/seg/");
    return std::ranges::count_if(before, [&](const auto& name) { return !now.contains(name); });
  };
  world_.erase({"v1", "v2"});
  constexpr std::int64_t kAhead = 25 * 3600;
  world_.clock().seconds += kAhead;
  world_.objects().clock_ahead_s = -kAhead;
  world_.store("v3", tree_of(30));
  EXPECT_EQ(removed(), 0) << "the machine's clock is ahead";
  world_.clock().seconds -= kAhead;
  world_.objects().clock_ahead_s = kAhead;
  world_.store("v4", tree_of(31));
  EXPECT_EQ(removed(), 0) << "the store's clock is ahead";
  world_.objects().clock_ahead_s = 0;
  world_.clock().seconds += 24 * 3600 + 1;
  world_.store("v5", tree_of(32));
  EXPECT_GT(removed(), 0) << "by both clocks, a day has passed";
  world_.expect_versions();
}

TEST_P(ReplicaWriters, AttachedFolderFollowsTheHeads) {
  const auto reader = world_.path() + "-reader";
  must(repo::attach_to_store({.place = "s3://memory/p"}, reader, world_.options(true),
                             world_.hooks()));
  for (std::uint64_t i = 2; i < 8; ++i) {
    world_.store("v" + std::to_string(i), tree_of(i));
    if (i > 3) world_.erase({"v" + std::to_string(i - 2)});
    world_.arrange();
    const auto repository =
        must(repo::RepositoryImpl::open(reader, world_.options(true), world_.hooks()));
    EXPECT_EQ(World::read_all_versions(*repository), world_.local());
    EXPECT_TRUE(must(repository->check({}, {})).damages.empty());
  }
}

TEST_P(ReplicaWriters, AttachedFolderRefusesToBeWritten) {
  const auto reader = world_.path() + "-reader";
  must(repo::attach_to_store({.place = "s3://memory/p"}, reader, world_.options(true),
                             world_.hooks()));
  EXPECT_EQ(code_of(repo::RepositoryImpl::open(reader, world_.options(), world_.hooks())),
            ErrorCode::kReadOnly);
}

// At each request of an attachment and of its later refresh, the store fails. The next attempt
// completes the folder.
TEST_P(ReplicaWriters, InterruptedReadersAreCompleted) {
  world_.store("v2", tree_of(2));
  for (std::uint64_t at = 0;; at += 2) {
    const auto reader = world_.path() + "-reader" + std::to_string(at);
    std::uint64_t requests = 0;
    bool failed = false;
    auto hooks = world_.hooks();
    hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
      auto bucket = std::make_unique<MemoryBucket>(world_.shared_objects(), "p/");
      bucket->set_faults([&](std::uint64_t, bucket::RequestKind, const std::string&) {
        if (requests++ != at) return Fault::kNone;
        failed = true;
        return Fault::kBefore;
      });
      return std::unique_ptr<bucket::Bucket>(std::move(bucket));
    };
    // This bucket repeats no request, so the read that meets the fault fails.
    const auto read = [&]() -> Versions {
      const bool had_failed = failed;
      try {
        const auto opened = must(repo::RepositoryImpl::open(reader, world_.options(true), hooks));
        return World::read_all_versions(*opened);
      } catch (const std::runtime_error&) {
        if (failed && !had_failed) return {};
        throw;
      }
    };
    const auto attach = [&] {
      return repo::attach_to_store({.place = "s3://memory/p"}, reader, world_.options(true), hooks);
    };
    if (!attach()) must(attach());
    EXPECT_TRUE(read() == world_.local() || failed);
    EXPECT_EQ(read(), world_.local());
    if (at == 4) world_.store("v3", tree_of(3));
    if (at == 8) world_.erase({"v1"});
    EXPECT_TRUE(read() == world_.local() || failed);
    EXPECT_EQ(read(), world_.local());
    if (!failed) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Plain, ReplicaWriters, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ReplicaWriters, testing::Values(true));

}  // namespace
}  // namespace varve::test
