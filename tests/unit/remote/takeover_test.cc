// SPDX-License-Identifier: Apache-2.0
// A second machine takes over a repository in an object store, with nothing but the store and the
// key. The first machine may come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include "format/data_codecs.h"
#include "format/superblock.h"
#include "maintain/manifest_file.h"
#include "store/repository_paths.h"
#include "store/sealed_places.h"
#include "store/superblock_text.h"
#include "support/file_content.h"
#include "support/test_encryption.h"
#include "world.h"

namespace varve::test {
namespace {

class ReplicaTakeover : public testing::TestWithParam<std::tuple<bool, Placement>> {
 protected:
  ReplicaTakeover() : world_(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam())) {
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(10));
    world_.store("v2", tree_of(11));
    world_.arrange();
  }

  Result<void> take_over(const std::string& folder) { return take_over(folder, world_.hooks()); }
  Result<void> take_over(const std::string& folder, const remote::BucketHooks& hooks) {
    return repo::attach_to_store({.place = "s3://memory/p", .cache_bytes = 0}, folder,
                                 world_.options(), hooks, AttachRole::kWrites);
  }
  std::unique_ptr<Repository> open(const std::string& folder, bool read_only = false) {
    return must(repo::RepositoryImpl::open(folder, world_.options(read_only), world_.hooks()));
  }
  // Stores a version, and returns the result of closing the repository.
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
  std::uint64_t object_bytes() {
    std::uint64_t bytes = 0;
    for (const auto& [name, object] : world_.objects().objects) {
      const bool is_data =
          name.find("/seg/") != std::string::npos || name.find("/vol/") != std::string::npos;
      if (is_data) bytes += object.bytes.size();
    }
    return bytes;
  }

  World world_;
  const std::string other_ = world_.path() + "-other";
};

TEST_P(ReplicaTakeover, TheFolderWritesAfterwards) {
  must(take_over(other_));
  auto expected = world_.local();
  EXPECT_TRUE(World::read_all_versions(*open(other_)) == expected);
  // Duplicates are found again.
  const auto before = object_bytes();
  must(store(other_, "v3", tree_of(11)));
  EXPECT_LT(object_bytes(), before + 10'000);
  expected["v3"] = tree_of(11);
  must(store(other_, "v4", tree_of(20)));
  expected["v4"] = tree_of(20);
  {
    const auto repository = open(other_);
    const auto id = must(repository->find_series("s")).id;
    must(repository->delete_versions(id, {must(repository->find_version(id, "v1")).number}));
    must(repository->arrange(id, {}));
    must(repository->close());
  }
  expected.erase("v1");
  {
    const auto repository = open(other_);
    EXPECT_TRUE(World::read_all_versions(*repository) == expected);
    const auto report = must(repository->check({}, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
    must(repository->close());
  }
  EXPECT_TRUE(world_.attached() == expected);
  world_.expect_chain();
}

TEST_P(ReplicaTakeover, TheFirstMachineIsFencedWhenItComesBack) {
  must(take_over(other_));
  const auto stored = store(world_.path(), "late", tree_of(30));
  EXPECT_EQ(code_of(stored), ErrorCode::kLocked);
  EXPECT_NE(stored.error().message().find("s/late"), std::string::npos) << stored.error().message();
  EXPECT_NE(stored.error().message().find("varve copy"), std::string::npos);
  // The first folder keeps its versions, and reads the versions.
  auto expected = world_.local();
  expected["late"] = tree_of(30);
  EXPECT_TRUE(World::read_all_versions(*open(world_.path(), true)) == expected);
  must(store(other_, "v3", tree_of(31)));
  auto found = world_.attached();
  EXPECT_TRUE(found.contains("v3"));
  EXPECT_FALSE(found.contains("late"));
  world_.expect_chain();
}

// The first machine is alive after all: between the takeover's look at the newest head and the
// takeover's own head, the machine creates a head.
// Both folders are on one machine. The machine remembers the sequence number of an encrypted
// repository. A change never uploaded is not missing in the store.
TEST_P(ReplicaTakeover, WhatOnlyTheFirstFolderHasMakesNoOlderState) {
  auto options = world_.options();
  options.memory_folder = world_.path() + "-state";
  auto deaf = world_.hooks();
  deaf.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    auto bucket = std::make_unique<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
    bucket->fail_at(0, Fault::kBefore, UINT64_MAX);
    return std::unique_ptr<bucket::Bucket>(std::move(bucket));
  };
  const auto change = [&](const std::string& path, const remote::BucketHooks& hooks) {
    const auto repository = must(repo::RepositoryImpl::open(path, options, hooks));
    const auto id = must(repository->find_series("s")).id;
    const auto number = must(repository->open_version(id, "more", folder())).number;
    must(repository->seal(id, number, ""));
    must(repository->rename_version(id, number, "renamed"));
    must(repository->delete_versions(id, {number}));
    return repository->close();
  };
  must(change(world_.path(), world_.hooks()));
  EXPECT_EQ(code_of(change(world_.path(), deaf)), ErrorCode::kUnavailable);
  auto reading = options;
  reading.read_only = true;
  must(repo::RepositoryImpl::open(world_.path(), reading, world_.hooks()));
  must(repo::attach_to_store({.place = "s3://memory/p"}, other_, options, world_.hooks(),
                             AttachRole::kWrites));
  must(change(other_, world_.hooks()));
  // The first folder learns of the fence only now.
  EXPECT_EQ(code_of(change(world_.path(), world_.hooks())), ErrorCode::kLocked);
  must(change(other_, world_.hooks()));
}

// A former state of the store is refused before the takeover writes anything.
TEST_P(ReplicaTakeover, OfAnOlderStateIsRefusedAtOnce) {
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
  const auto attach = [&] {
    return repo::attach_to_store({.place = "s3://memory/p"}, other_, options, world_.hooks(),
                                 AttachRole::kWrites);
  };
  EXPECT_EQ(code_of(attach()), ErrorCode::kCorrupt);
  EXPECT_EQ(world_.objects().objects.size(), older.size());
  options.accept_older = true;
  must(attach());
  options.accept_older = false;
  must(repo::RepositoryImpl::open(other_, options, world_.hooks()));
}

TEST_P(ReplicaTakeover, TheFirstMachineMayBeFaster) {
  auto hooks = world_.hooks();
  bool done = false;
  hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    auto bucket = std::make_unique<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
    bucket->set_faults([&](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
      const bool is_head =
          kind == bucket::RequestKind::kPut && name.find("/head/") != std::string::npos;
      if (is_head && !std::exchange(done, true)) must(store(world_.path(), "v3", tree_of(12)));
      return Fault::kNone;
    });
    return std::unique_ptr<bucket::Bucket>(std::move(bucket));
  };
  const auto taken = take_over(other_, hooks);
  ASSERT_TRUE(done);
  EXPECT_EQ(code_of(taken), ErrorCode::kLocked);
  EXPECT_NE(taken.error().message().find("same command again"), std::string::npos);
  // The first machine goes on, and another attempt takes over from the first machine.
  must(store(world_.path(), "v4", tree_of(13)));
  must(take_over(other_));
  EXPECT_EQ(code_of(store(world_.path(), "v5", tree_of(14))), ErrorCode::kLocked);
  auto expected = world_.local();
  expected["v3"] = tree_of(12);
  expected["v4"] = tree_of(13);
  EXPECT_TRUE(World::read_all_versions(*open(other_)) == expected);
  must(store(other_, "v6", tree_of(15)));
  world_.expect_chain();
}

TEST_P(ReplicaTakeover, AnOpenVersionStaysBehind) {
  {
    const auto repository = open(world_.path());
    const auto id = must(repository->find_series("s")).id;
    must(repository->open_version(id, "open", folder()));
    write_file(*must(repository->writer(id)), kRootIno, "a", noise(200'000, 5));
    must(repository->sync());
    must(repository->close());
  }
  must(take_over(other_));
  EXPECT_TRUE(World::read_all_versions(*open(other_)) == world_.local());
  must(store(other_, "v3", tree_of(31)));
  const auto repository = open(other_);
  const auto report = must(repository->check({}, {}));
  for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
}

// Later versions need the manifest of a deleted version. Without the notes, a rebuild of a lost
// catalog would take the deleted version for a version missing in the labels (docs/decisions/155).
TEST_P(ReplicaTakeover, LabelsNoteDeletedVersions) {
  const auto notes_of = [&](const std::string& folder_path) {
    std::ifstream in(folder_path + "/varve.repo", std::ios::binary);
    const auto superblock = must(format::decode_superblock(rest_of(in)));
    const auto keys = std::get<0>(GetParam()) ? keys_of(folder_path) : nullptr;
    const auto files =
        store::seal_files(must(store::open_folder(folder_path, true)), keys, folder_path);
    const format::DataCodecs codecs(superblock.parameters, keys);
    const SeriesId series{1};
    const auto labels = must(maintain::read_labels(
        *files, codecs.frames(), store::RepositoryPaths(folder_path).series(series), series));
    return std::pair(labels.notes_removed, labels.removed);
  };
  {
    const auto repository = open(world_.path());
    const auto id = must(repository->find_series("s")).id;
    must(repository->delete_versions(id, {must(repository->find_version(id, "v1")).number}));
    must(repository->close());
  }
  const auto before = notes_of(world_.path());
  EXPECT_TRUE(before.first);
  must(take_over(other_));
  EXPECT_EQ(notes_of(other_), before);
}

// At each request of a takeover the store fails, or the store's answer is lost. Another attempt
// completes the takeover.
TEST_P(ReplicaTakeover, AnInterruptedTakeoverIsRepeated) {
  const auto objects = world_.objects().objects;
  for (const auto fault : {Fault::kBefore, Fault::kLost, Fault::kLater}) {
    for (std::uint64_t at = 0;; ++at) {
      // Each takeover finds the store of the first machine, not that of hundreds of takeovers.
      world_.objects().objects = objects;
      const auto folder_path = other_ + std::to_string(static_cast<int>(fault) * 1000 + at);
      std::uint64_t requests = 0;
      bool failed = false;
      std::shared_ptr<MemoryBucket> used;
      auto hooks = world_.hooks();
      hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
        used = std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
        used->set_faults([&](std::uint64_t, bucket::RequestKind, const std::string&) {
          if (requests++ != at) return Fault::kNone;
          failed = true;
          return fault;
        });
        return std::unique_ptr<bucket::Bucket>(std::make_unique<LentBucket>(used));
      };
      const auto attempt = [&] {
        ++world_.clock().seconds;  // So the objects of an attempt are older than the next head.
        auto taken = take_over(folder_path, hooks);
        if (used) used->apply_late();
        return taken;
      };
      auto taken = attempt();
      for (int attempts = 0; !taken && attempts < 3; ++attempts) taken = attempt();
      must(taken);
      EXPECT_TRUE(World::read_all_versions(*open(folder_path)) == world_.local());
      std::filesystem::remove_all(folder_path);
      world_.expect_chain();
      if (!failed) break;
    }
  }
}

// A process may be killed between the last change of the store and the report of success.
TEST_P(ReplicaTakeover, ACompleteTakeoverSucceedsAgain) {
  must(take_over(other_));
  const auto heads = [&] { return world_.heads().size(); };
  const auto before = heads();
  const auto mark = other_ + "/attaching.tmp";
  std::ofstream(mark).close();
  must(take_over(other_));
  EXPECT_FALSE(std::filesystem::exists(mark));
  must(take_over(other_));
  EXPECT_EQ(heads(), before) << "nothing was taken over";
  must(store(other_, "v3", tree_of(12)));
  must(take_over(other_));
  EXPECT_TRUE(World::read_all_versions(*open(other_)) == world_.attached());
  world_.expect_chain();
}

TEST_P(ReplicaTakeover, AFolderWithAnotherRoleOrWithoutItsRoleIsRefused) {
  const auto attach = [&](const std::string& folder, AttachRole role) {
    return repo::attach_to_store({.place = "s3://memory/p"}, folder, world_.options(true),
                                 world_.hooks(), role);
  };
  const auto reader = world_.path() + "-reader";
  must(attach(reader, AttachRole::kReads));
  must(attach(reader, AttachRole::kReads));
  must(take_over(other_));
  EXPECT_EQ(code_of(attach(other_, AttachRole::kReads)), ErrorCode::kExists);
  // The first folder does not know yet about the loss of the role.
  EXPECT_EQ(code_of(take_over(world_.path())), ErrorCode::kLocked);
  EXPECT_EQ(code_of(store(world_.path(), "late", tree_of(30))), ErrorCode::kLocked);
  EXPECT_EQ(code_of(take_over(world_.path())), ErrorCode::kLocked);
  const auto local = world_.path() + "-local";
  must(Repository::create(local, {}, {}));
  EXPECT_EQ(code_of(take_over(local)), ErrorCode::kExists);
}

INSTANTIATE_TEST_SUITE_P(All, ReplicaTakeover,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Placement::kLineage, Placement::kPool)));

}  // namespace
}  // namespace varve::test
