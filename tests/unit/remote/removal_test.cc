// SPDX-License-Identifier: Apache-2.0
// Removals from an object store, and objects that must stay.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/coding.h"
#include "io/posix_file_system.h"
#include "remote/check_store.h"
#include "remote/lease.h"
#include "remote/object_cut.h"
#include "remote/replica_state.h"
#include "world.h"

namespace varve::test {
namespace {

constexpr std::int64_t kDay = 24 * 60 * 60;

// Stores a version, and returns the result of closing the repository.
Result<void> try_to_store(World& world, const remote::BucketHooks& hooks, const std::string& path,
                          const std::string& name, std::uint64_t seed) {
  auto opened = repo::RepositoryImpl::open(path, world.options(), hooks);
  if (!opened) return opened.error();
  auto& repository = **opened;
  const auto id = must(repository.find_series("s")).id;
  const auto number = must(repository.open_version(id, name, folder())).number;
  write_file(*must(repository.writer(id)), kRootIno, "a", noise(50'000, seed));
  must(repository.seal(id, number, ""));
  return repository.close();
}

class ReplicaRemoval : public testing::TestWithParam<bool> {
 protected:
  ReplicaRemoval() : world_(GetParam(), Mishap::kNone, 0) {
    world_.hooks().heads = {.heads = 3, .seconds = 30 * kDay};
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(1));
  }
  [[nodiscard]] std::string id() const {
    const auto name = *world_.heads().begin();  // p/ID/head/N
    return name.substr(2, name.find('/', 2) - 2);
  }
  [[nodiscard]] std::uint64_t newest() const {
    return std::stoull(world_.heads().rbegin()->substr(id().size() + 8));
  }
  World world_;
};

TEST_P(ReplicaRemoval, OldHeadsAreRemovedBelowAGuardHead) {
  for (std::uint64_t i = 2; i < 12; ++i) {
    world_.clock().seconds += 10 * kDay;
    world_.store("v" + std::to_string(i), tree_of(i));
    world_.expect_versions();
  }
  const auto heads = world_.heads();
  // The newest head of sufficient age stays, and so does each later head.
  EXPECT_EQ(heads.size(), 5U) << *heads.begin();
  EXPECT_EQ(newest(), 11U);
}

TEST_P(ReplicaRemoval, HeadsOfTheLastMonthStay) {
  for (std::uint64_t i = 2; i < 12; ++i) world_.store("v" + std::to_string(i), tree_of(i));
  EXPECT_EQ(world_.heads().size(), 11U);
}

// The first writer stalls before each request, for months. Meanwhile a second writer writes and
// removes old heads, so the number created by the first writer is free again. Only one of the two
// writers goes on, and each version acknowledged by a writer is in the store.
TEST_P(ReplicaRemoval, StalledWriterNeverCommitsBesideAnother) {
  bool found_free_number = false;
  bool stalled_one_won = false;
  for (std::uint64_t at = 0;; ++at) {
    World world(GetParam(), Mishap::kNone, 0);
    world.hooks().heads = {.heads = 3, .seconds = 30 * kDay};
    world.run([&] { return world.create(); });
    world.store("v1", tree_of(1));
    const auto copy = world.path() + "-copy";
    copy_crashed(world.path(), copy);
    std::set<std::string> acknowledged{"v1"};
    std::size_t others = 0;
    bool stalled = false;
    std::uint64_t requests = 0;
    auto hooks = world.hooks();
    const auto second_head = [&] { return world.names_with("/head/0000000002"); };
    hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
      auto bucket = std::make_unique<MemoryBucket>(world.shared_objects(), "p/", &world.clock());
      bucket->set_faults([&](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
        if (requests++ != at) return Fault::kNone;
        stalled = true;
        for (std::uint64_t i = 0; i < 9; ++i) {
          world.clock().seconds += 40 * kDay;
          const auto other = "other" + std::to_string(i);
          const auto stored = try_to_store(world, world.hooks(), world.path(), other, i);
          if (!stored) {
            EXPECT_EQ(code_of(stored), ErrorCode::kLocked) << stored.error().message();
            break;
          }
          acknowledged.insert(other);
          ++others;
        }
        const bool creates_head =
            kind == bucket::RequestKind::kPut && name.find("/head/") != std::string::npos;
        if (creates_head && others != 0) found_free_number = second_head().empty();
        return Fault::kNone;
      });
      return std::unique_ptr<bucket::Bucket>(std::move(bucket));
    };
    const auto stored = try_to_store(world, hooks, copy, "stalled", 99);
    if (stored) acknowledged.insert("stalled");
    if (!stored) {
      EXPECT_EQ(code_of(stored), ErrorCode::kLocked) << stored.error().message();
    }
    if (!stalled) break;
    EXPECT_NE(stored.has_value(), others != 0) << "request " << at;
    stalled_one_won = stalled_one_won || stored.has_value();
    const auto found = world.attached();
    for (const auto& name : acknowledged) EXPECT_TRUE(found.contains(name)) << name << " " << at;
    // A fenced folder stays fenced.
    const auto again = stored ? try_to_store(world, world.hooks(), world.path(), "again", 5)
                              : try_to_store(world, hooks, copy, "again", 5);
    EXPECT_EQ(code_of(again), ErrorCode::kLocked);
    EXPECT_FALSE(world.attached().contains("again"));
    if (HasFailure()) return;
  }
  EXPECT_TRUE(found_free_number);
  EXPECT_TRUE(stalled_one_won);
}

TEST_P(ReplicaRemoval, ObjectsOfAKilledProcessAreRemovedLater) {
  const auto orphan = "p/" + id() + "/seg/0123456789abcdef-00000001";
  const auto foreign = "p/" + id() + "/seg/notes.txt";
  world_.objects().objects[orphan].bytes.resize(100);
  world_.objects().objects[foreign].bytes.resize(100);
  world_.store("v2", tree_of(2));
  world_.clock().seconds += 31 * kDay;
  world_.store("v3", tree_of(3));
  EXPECT_TRUE(world_.objects().objects.contains(orphan));
  world_.clock().seconds += 3600;
  world_.store("v4", tree_of(4));
  EXPECT_TRUE(world_.objects().objects.contains(orphan));
  world_.clock().seconds += kDay;
  world_.store("v5", tree_of(5));
  EXPECT_FALSE(world_.objects().objects.contains(orphan));
  EXPECT_TRUE(world_.objects().objects.contains(foreign));
  world_.expect_versions();
}

// The key of a machine may have no right to remove.
TEST_P(ReplicaRemoval, KeyThatMayNotRemoveLosesNothing) {
  bool may_remove = false;
  class Keeper final : public LentBucket {
   public:
    Keeper(std::shared_ptr<MemoryBucket> bucket, bool& may_remove)
        : LentBucket(std::move(bucket)), may_remove_(may_remove) {}
    Result<void> remove(const std::string& name) override {
      if (may_remove_) return LentBucket::remove(name);
      return Error(ErrorCode::kNotPermitted, "the store refuses to remove " + name);
    }

   private:
    bool& may_remove_;
  };
  auto hooks = world_.hooks();
  hooks.open = [&](const remote::BucketConfig&) {
    return Result<std::unique_ptr<bucket::Bucket>>(std::make_unique<Keeper>(
        std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock()),
        may_remove));
  };
  for (std::uint64_t i = 0; i < 8; ++i) {
    world_.clock().seconds += 20 * kDay;
    must(try_to_store(world_, hooks, world_.path(), "w" + std::to_string(i), i));
  }
  EXPECT_EQ(newest(), 9U);
  EXPECT_EQ(world_.heads().size(), 9U);
  const auto others = world_.names_with("/other/").size();
  may_remove = true;
  must(try_to_store(world_, hooks, world_.path(), "last", 100));
  EXPECT_LT(world_.heads().size(), 9U);
  EXPECT_LT(world_.names_with("/other/").size(), others);
  EXPECT_EQ(world_.attached().size(), 10U);
}

// A keeper removes objects that the writer's key may not remove, while a writer stalls in an
// upload.
TEST_P(ReplicaRemoval, KeeperRemovesOnlyWhatNoWriterCanName) {
  const auto keeper = world_.path() + "-keeper";
  must(repo::attach_to_store({.place = "s3://memory/p"}, keeper, world_.options(true),
                             world_.hooks()));
  const auto reclaim = [&] {
    return must(repo::reclaim_store(keeper, world_.options(true), kDay, world_.hooks()));
  };
  EXPECT_EQ(code_of(repo::reclaim_store(world_.path(), world_.options(), kDay, world_.hooks())),
            ErrorCode::kInvalid);
  const auto orphan = "p/" + id() + "/vol/0123456789abcdef-00000001";
  world_.objects().objects[orphan].bytes.resize(100);
  std::uint64_t noted = 0;
  for (std::uint64_t at = 0; at < 8; ++at) {
    bool stalled = false;
    std::uint64_t requests = 0;
    auto hooks = world_.hooks();
    hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
      auto bucket = std::make_unique<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
      bucket->set_faults([&](std::uint64_t, bucket::RequestKind kind, const std::string&) {
        if (kind == bucket::RequestKind::kRemove) return Fault::kBefore;  // The key has no right.
        if (requests++ != at) return Fault::kNone;
        stalled = true;
        for (int month = 0; month < 3; ++month) {
          noted += reclaim().noted_objects;
          world_.clock().seconds += 31 * kDay;
        }
        return Fault::kNone;
      });
      return std::unique_ptr<bucket::Bucket>(std::move(bucket));
    };
    must(try_to_store(world_, hooks, world_.path(), "w" + std::to_string(at), at));
    EXPECT_TRUE(stalled);
    EXPECT_EQ(world_.attached().size(), at + 2);
  }
  EXPECT_GT(noted, 1U);  // Uploads in progress, too.
  // Two trials of a writer with a key that removes nothing.
  for (const auto* const trial : {"p/probe/old", "p/probe/young"}) {
    auto& object = world_.objects().objects[trial];
    object.modified = {world_.clock().seconds - (trial[8] == 'o' ? 2 : 0) * kDay, 0};
  }
  reclaim();
  EXPECT_EQ(world_.names_with("probe/"), std::set<std::string>{"p/probe/young"});
  for (int month = 0; month < 2; ++month) {
    reclaim();
    world_.clock().seconds += 31 * kDay;
    must(try_to_store(world_, world_.hooks(), world_.path(), "x" + std::to_string(month), 50));
  }
  EXPECT_FALSE(world_.objects().objects.contains(orphan));
  EXPECT_EQ(world_.attached().size(), 11U);
  EXPECT_LT(world_.heads().size(), 8U);
}

TEST_P(ReplicaRemoval, LeaseSaysWhichFolderWrites) {
  const auto name = "p/" + id() + "/lease";
  ASSERT_TRUE(world_.objects().objects.contains(name));
  const auto change = world_.objects().objects[name].change;
  world_.store("v2", tree_of(2));
  EXPECT_EQ(world_.objects().objects[name].change, change);  // Overwritten rarely.
  const std::string text(base::as_text(world_.objects().objects[name].bytes));
  EXPECT_EQ(text.find(world_.path()) != std::string::npos, !GetParam());
  const auto copy = world_.path() + "-copy";
  copy_crashed(world_.path(), copy);
  world_.store("v3", tree_of(3));
  const auto stored = try_to_store(world_, world_.hooks(), copy, "other", 1);
  ASSERT_FALSE(stored);
  EXPECT_NE(stored.error().message().find("in " + world_.path() + " since"), std::string::npos)
      << stored.error().message();
}

INSTANTIATE_TEST_SUITE_P(Plain, ReplicaRemoval, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ReplicaRemoval, testing::Values(true));

TEST(ReplicaLease, RejectsEveryChangedByte) {
  const remote::Lease lease{"host\n", "root", "/srv/backup", 1'700'000'000};
  const auto text = must(remote::encode_lease(lease, nullptr));
  EXPECT_EQ(must(remote::decode_lease(text, nullptr)), lease);
  EXPECT_EQ(remote::lease_text(lease).find('\n'), std::string::npos);
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(remote::decode_lease(text.substr(0, bytes), nullptr));
  }
  EXPECT_FALSE(remote::decode_lease(text + "x", nullptr));
}

TEST(ReplicaCut, FollowsTheRule) {
  const auto cut = [](std::uint64_t bytes, std::uint64_t object) {
    return remote::is_worth_cutting({.object = "o", .bytes = bytes, .object_bytes = object});
  };
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  EXPECT_TRUE(cut(56 * kMib, 64 * kMib));
  EXPECT_FALSE(cut(57 * kMib, 64 * kMib));
  EXPECT_TRUE(cut(3 * kMib, 4 * kMib));
  EXPECT_FALSE(cut(3 * kMib + 1, 4 * kMib));
  EXPECT_FALSE(cut(1000, 60'000));  // Cheaper to keep.
  EXPECT_FALSE(cut(0, 4 * kMib));
}

// Deletes a version whose own chunks are the second half of a volume.
struct CutResult {
  std::uint64_t copies = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t dead_bytes = 0;  // In objects named by the newest head.
};
CutResult delete_and_cut(World& world) {
  world.hooks().extent_bytes_max = 64U << 20;
  world.run([&] { return world.create(); });
  const auto a = noise(3'000'000, 1);
  const auto c = noise(3'000'000, 3);
  world.store("v1", {{"a", a}});
  world.store("v2", {{"a", a}, {"b", noise(3'000'000, 2)}});
  world.store("v3", {{"c", c}});
  world.store("v4", {{"c", c}, {"d", noise(100'000, 4)}});
  world.arrange();
  const auto puts = world.counts(bucket::RequestKind::kPut).bytes_sent;
  const auto copies = world.counts(bucket::RequestKind::kCopy).requests;
  world.erase({"v2"});
  world.expect_versions();
  CutResult result;
  result.copies = world.counts(bucket::RequestKind::kCopy).requests - copies;
  result.sent_bytes = world.counts(bucket::RequestKind::kPut).bytes_sent - puts;
  const auto files = io::make_posix_file_system();
  const auto state = must(remote::ReplicaState::open(*files, world.path(), true));
  for (const auto& [path, extents] : must(state.objects())) {
    for (const auto& extent : extents) {
      result.dead_bytes += extent.object_bytes - extent.lead.size() - extent.bytes;
    }
  }
  return result;
}

TEST(ReplicaCut, CopiesTheLiveFrontInsideTheStore) {
  World world(false, Mishap::kNone, 0);
  const auto result = delete_and_cut(world);
  EXPECT_EQ(result.copies, 1U);
  EXPECT_EQ(result.dead_bytes, 0U);
  EXPECT_LT(result.sent_bytes, 100'000U);
  // The store made the object, so there is no checksum.
  const auto check =
      must(remote::check_objects(world.path(), world.options(true), world.hooks(), true));
  for (const auto& damage : check.damages) ADD_FAILURE() << damage.object << " " << damage.what;
  // The old object goes a day after.
  const auto volumes = world.names_with("/vol/").size();
  world.clock().seconds += kDay + 1;
  world.store("v5", {{"c", noise(3'000'000, 3)}});
  EXPECT_EQ(world.names_with("/vol/").size(), volumes - 1);
  world.expect_versions();
}

TEST(ReplicaCut, StoreThatCopiesNothingKeepsTheObject) {
  World world(false, Mishap::kNone, 0);
  world.objects().copies_ranges = false;
  const auto result = delete_and_cut(world);
  EXPECT_GT(result.dead_bytes, 2'900'000U);
  EXPECT_LT(result.sent_bytes, 100'000U);
}

TEST(ReplicaCut, FaultsLoseNothing) {
  World whole(false, Mishap::kNone, 0);
  delete_and_cut(whole);
  const auto first = whole.requests() - 12;  // The deletion's.
  for (const auto mishap : {Mishap::kBefore, Mishap::kLost, Mishap::kLater, Mishap::kKilledAfter}) {
    for (auto at = first; at < whole.requests(); at += 4) {
      World world(false, mishap, at);
      SCOPED_TRACE(world.where());
      EXPECT_EQ(delete_and_cut(world).dead_bytes, 0U);
      world.expect_chain();
    }
  }
}

TEST(ReplicaCut, VolumesHaveTheirStorageClassAndColdOnesAreNotCopied) {
  World world(false, Mishap::kNone, 0);
  world.volume_class = "STANDARD_IA";
  const auto result = delete_and_cut(world);
  std::size_t volumes = 0;
  for (const auto& [name, object] : world.objects().objects) {
    const bool is_volume = name.find("/vol/") != std::string::npos;
    volumes += is_volume;
    EXPECT_EQ(object.storage_class, is_volume ? "STANDARD_IA" : "") << name;
  }
  EXPECT_GT(volumes, 0U);
  EXPECT_EQ(result.copies, 0U);
  EXPECT_GT(result.dead_bytes, 2'900'000U);
}

}  // namespace
}  // namespace varve::test
