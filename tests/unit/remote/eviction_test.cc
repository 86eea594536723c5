// SPDX-License-Identifier: Apache-2.0
// Histories of a writer's folder that keeps no data: stored data is evicted at once. At every
// request, the store fails, loses the answer or answers late, or the process is killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <tuple>
#include <vector>

#include "campaign.h"
#include "stepped_history.h"
#include "world.h"

namespace varve::test {
namespace {

std::vector<SteppedHistory::Step> evicted_steps() {
  return {
      [](World& world) { world.run([&] { return world.create(); }); },
      [](World& world) { world.store("v1", tree_of(10)); },
      [](World& world) {
        world.store("v2", tree_of(11));
        world.expect_here();
      },
      [](World& world) { world.store("v3", tree_of(12)); },
      [](World& world) {
        world.arrange();
        world.expect_here();
      },
      [](World& world) { world.erase({"v1"}); },
      [](World& world) { world.rename("v2", "second"); },
      [](World& world) {
        world.store("v4", tree_of(14));
        world.expect_here();
      },
      [](World& world) { world.arrange(); },
      [](World& world) {
        world.erase({"second", "v3"});
      },
      [](World& world) {
        world.clock().seconds += 2 * 24 * 3600;
        world.store("v5", tree_of(15));
        world.expect_here();
        world.expect_versions();
        world.expect_chain();
      },
  };
}

void play_evicted(World& world) {
  for (const auto& step : evicted_steps()) step(world);
}

std::uint64_t stride_evicted() {
  const char* const wanted = std::getenv("VARVE_TEST_REQUESTS");
  return wanted == nullptr ? 151 : std::max<std::uint64_t>(std::strtoull(wanted, nullptr, 10), 1);
}

class ReplicaEviction : public testing::TestWithParam<std::tuple<bool, Placement>> {};

TEST_P(ReplicaEviction, AFolderWithoutDataWorks) {
  World world(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam()), 0);
  play_evicted(world);
  EXPECT_EQ(world.local_bytes(), 0U);
}

// VARVE_TEST_REQUESTS=N tries every Nth request; VARVE_TEST_FROM=N starts at request N.
TEST_P(ReplicaEviction, NoRequestLosesAVersion) {
  SteppedHistory history(
      [](Mishap mishap, std::uint64_t at) {
        const auto [encrypts, where] = GetParam();
        return std::make_unique<World>(encrypts, mishap, at, where, 0);
      },
      evicted_steps());
  const auto requests = history.whole().requests();
  std::uint64_t first = from_request();
  std::uint64_t tried = 0;
  for (const auto mishap : {Mishap::kBefore, Mishap::kLost, Mishap::kLater, Mishap::kKilledBefore,
                            Mishap::kKilledAfter}) {
    for (auto at = (first += 5) % stride_evicted(); at < requests; at += stride_evicted()) {
      static_cast<void>(history.play(mishap, at));
      if (HasFailure()) return;
      ++tried;
    }
  }
  tell_tried(tried, requests);
}

TEST_P(ReplicaEviction, ARebuiltCatalogUsesTheStore) {
  World world(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam()), 0);
  world.run([&] { return world.create(); });
  world.store("v1", tree_of(10));
  world.store("v2", tree_of(11));
  world.arrange();
  world.erase({"v1"});
  world.store("v3", tree_of(13));
  EXPECT_EQ(world.local_bytes(), 0U);
  std::filesystem::remove_all(world.path() + "/catalog");
  RepairOptions options;
  if (std::get<0>(GetParam())) options.key = [] { return Result<UserKey>(test_key()); };
  {
    const auto plan = must(repo::plan_repair(world.path(), options, false, {}, world.hooks()));
    const auto report = must(plan->execute({}));
    for (const auto& problem : report.problems) ADD_FAILURE() << problem;
    EXPECT_EQ(report.versions, 2U);
  }
  world.expect_here();
  world.store("v4", tree_of(14));
  world.arrange();
  world.expect_here();
  world.expect_versions();
  world.expect_chain();
  EXPECT_EQ(world.local_bytes(), 0U);
}

// Cutting and removing files needs no data; freeing a part of a container needs the header.
TEST_P(ReplicaEviction, DeletingReadsAtMostAHeader) {
  World world(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam()), 0);
  world.run([&] { return world.create(); });
  for (std::uint64_t i = 1; i < 5; ++i) world.store("v" + std::to_string(i), tree_of(10 + i));
  world.arrange();
  std::uint64_t reads = 0;
  auto hooks = world.hooks();
  hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    auto bucket = std::make_unique<MemoryBucket>(world.shared_objects(), "p/", &world.clock());
    bucket->set_faults([&](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
      const bool is_data =
          name.find("/seg/") != std::string::npos || name.find("/vol/") != std::string::npos;
      reads += kind == bucket::RequestKind::kGet && is_data;
      return Fault::kNone;
    });
    return std::unique_ptr<bucket::Bucket>(std::move(bucket));
  };
  {
    const auto repository = must(repo::RepositoryImpl::open(world.path(), world.options(), hooks));
    const auto id = must(repository->find_series("s")).id;
    const auto first = must(repository->find_version(id, "v1")).number;
    const auto second = must(repository->find_version(id, "v2")).number;
    must(repository->delete_versions(id, {first, second}));
    must(repository->close());
  }
  EXPECT_LE(reads, 1U);
}

TEST_P(ReplicaEviction, WithoutTheStoreAllElseGoesOn) {
  World world(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam()), 0);
  world.run([&] { return world.create(); });
  world.store("v1", tree_of(10));
  auto hooks = world.hooks();
  hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    return Error(ErrorCode::kUnavailable, "no network");
  };
  {
    const auto repository = must(repo::RepositoryImpl::open(world.path(), world.options(), hooks));
    const auto id = must(repository->find_series("s")).id;
    const auto old = must(repository->find_version(id, "v1")).number;
    {
      const auto reader = must(repository->reader(id, old));
      const auto file = must(reader->open(find(*reader, "a")));
      std::string out(1000, ' ');
      EXPECT_EQ(code_of(file->read(0, std::as_writable_bytes(std::span(out)))),
                ErrorCode::kUnavailable);
    }
    const auto number = must(repository->open_version(id, "v2", folder())).number;
    write_file(*must(repository->writer(id)), kRootIno, "new", noise(100'000, 77));
    must(repository->seal(id, number, ""));
    EXPECT_EQ(read_sealed(*must(repository->reader(id, number)), "new"), noise(100'000, 77));
    EXPECT_EQ(code_of(repository->close()), ErrorCode::kUnavailable);
  }
  EXPECT_GT(world.local_bytes(), 100'000U);
}

// The disk damages a byte between the seal and the upload.
TEST_P(ReplicaEviction, DamageBeforeTheUploadIsNoticedAndStays) {
  World world(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam()), 0);
  world.run([&] { return world.create(); });
  world.store("v1", tree_of(10));
  {
    const auto repository =
        must(repo::RepositoryImpl::open(world.path(), world.options(), world.hooks()));
    const auto id = must(repository->find_series("s")).id;
    const auto number = must(repository->open_version(id, "v2", folder())).number;
    write_file(*must(repository->writer(id)), kRootIno, "new", noise(100'000, 77));
    must(repository->seal(id, number, ""));
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(world.path())) {
      if (entry.path().extension() != ".seg") continue;
      ++files;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(entry.file_size() / 2));
      const auto byte = static_cast<char>(file.get() ^ 1);
      file.seekp(static_cast<std::streamoff>(entry.file_size() / 2));
      file.put(byte);
    }
    EXPECT_EQ(files, 1U);
    const auto closed = repository->close();
    EXPECT_EQ(code_of(closed), ErrorCode::kCorrupt);
    EXPECT_NE(closed.error().message().find("varve repair"), std::string::npos);
  }
  // The damaged file stays, and the rest of the data reached the store.
  EXPECT_GT(world.local_bytes(), 100'000U);
  const auto before = world.local_bytes();
  must(world.with([&](Repository& repository) {
    const auto id = must(repository.find_series("s")).id;
    const auto number = must(repository.open_version(id, "v3", folder())).number;
    write_file(*must(repository.writer(id)), kRootIno, "more", noise(100'000, 78));
    must(repository.seal(id, number, ""));
  }));
  EXPECT_EQ(world.local_bytes(), before);
}

// Data of a store without an answer is not damaged: no command reports lost data.
TEST_P(ReplicaEviction, WithoutTheStoreNothingCountsAsDamaged) {
  World world(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam()), 0);
  world.run([&] { return world.create(); });
  for (std::uint64_t i = 1; i < 4; ++i) world.store("v" + std::to_string(i), tree_of(10 + i));
  auto hooks = world.hooks();
  hooks.open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    auto bucket = std::make_unique<MemoryBucket>(world.shared_objects(), "p/", &world.clock());
    bucket->fail_at(0, Fault::kBefore, UINT64_MAX);
    return std::unique_ptr<bucket::Bucket>(std::move(bucket));
  };
  {
    const auto repository = must(repo::RepositoryImpl::open(world.path(), world.options(), hooks));
    const auto id = must(repository->find_series("s")).id;
    static_cast<void>(repository->arrange(id, {}));
    EXPECT_EQ(code_of(repository->check({}, {})), ErrorCode::kUnavailable);
    static_cast<void>(repository->close());
  }
  for (const bool rebuilds : {false, true}) {
    RepairOptions options;
    options.read_data = true;
    options.rebuild_catalog = rebuilds;
    if (std::get<0>(GetParam())) options.key = [] { return Result<UserKey>(test_key()); };
    auto plan = repo::plan_repair(world.path(), options, false, {}, hooks);
    if (rebuilds && plan) {
      EXPECT_EQ(code_of((*plan)->execute({})), ErrorCode::kUnavailable);
    } else {
      EXPECT_EQ(code_of(plan), ErrorCode::kUnavailable);
    }
  }
  world.expect_here();
  world.arrange();
  world.expect_here();
  world.expect_versions();
}

// An object lost by the store is damage: a repair notes the damage, and ends without an error.
TEST_P(ReplicaEviction, ARepairGivesLostObjectsUp) {
  const auto [is_encrypted, placement] = GetParam();
  for (const bool rebuilds : {false, true}) {
    World world(is_encrypted, Mishap::kNone, 0, placement, 0);
    world.run([&] { return world.create(); });
    world.store("v1", tree_of(10));
    world.store("v2", tree_of(11));
    const auto lost = *world.names_with("/seg/").begin();
    world.objects().objects.erase(lost);
    RepairOptions options;
    options.read_data = true;
    options.rebuild_catalog = rebuilds;
    if (is_encrypted) options.key = [] { return Result<UserKey>(test_key()); };
    {
      const auto plan = must(repo::plan_repair(world.path(), options, false, {}, world.hooks()));
      EXPECT_FALSE(plan->steps().empty());
      must(plan->execute({}));
    }
    // New versions refer to no lost data.
    must(world.with([&](Repository& repository) {
      const auto id = must(repository.find_series("s")).id;
      const auto number = must(repository.open_version(id, "v3", folder())).number;
      for (const auto& [file, bytes] : tree_of(10)) {
        write_file(*must(repository.writer(id)), kRootIno, file, bytes);
      }
      must(repository.seal(id, number, ""));
      const auto reader = must(repository.reader(id, number));
      for (const auto& [file, bytes] : tree_of(10)) EXPECT_EQ(read_sealed(*reader, file), bytes);
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReplicaEviction,
                         testing::Combine(testing::Bool(), testing::Values(Placement::kLineage,
                                                                           Placement::kLineagePool,
                                                                           Placement::kPool)));

}  // namespace
}  // namespace varve::test
