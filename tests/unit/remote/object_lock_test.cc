// SPDX-License-Identifier: Apache-2.0
// Locks of the objects in the store: set at the upload, extended at seals, waited for at removals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "io/posix_file_system.h"
#include "remote/check_store.h"
#include "remote/object_locks.h"
#include "remote/replica_state.h"
#include "stepped_history.h"
#include "varve/upkeep.h"
#include "world.h"

namespace varve::test {
namespace {

constexpr std::int64_t kLockDay = 24 * 60 * 60;

class ObjectLocks : public testing::TestWithParam<bool> {
 protected:
  ObjectLocks() : world_(GetParam(), Mishap::kNone, 0) { world_.objects().has_locks = true; }

  void create(std::uint32_t days) {
    world_.object_lock.days = days;
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(1));
  }
  /// Returns the first end of the locks of a repository's objects, in days from now on.
  [[nodiscard]] double first_end() {
    auto first = std::numeric_limits<std::int64_t>::max();
    for (const auto& [name, object] : world_.objects().objects) {
      if (name.ends_with("/lease") || name.find("/probe/") != std::string::npos) continue;
      first = std::min(first, object.locked_until);
    }
    return static_cast<double>(first - world_.clock().seconds) / kLockDay;
  }
  [[nodiscard]] std::uint64_t take_extensions() {
    return std::exchange(world_.objects().extensions, 0);
  }
  Result<void> set_lock(const ObjectLock& lock) {
    Result<void> set;
    must(world_.with([&](Repository& repository) {
      auto settings = must(repository.upkeep_settings());
      settings.object_lock = lock;
      set = repository.set_upkeep_settings(settings);
    }));
    return set;
  }
  World world_;
};

TEST_P(ObjectLocks, EveryObjectOfTheRepositoryIsLocked) {
  create(30);
  EXPECT_GE(first_end(), 30.0);
  EXPECT_TRUE(world_.names_with("/lease").size() == 1);
}

TEST_P(ObjectLocks, AreExtendedOnceInHalfOfTheirLength) {
  create(30);
  world_.store("v2", tree_of(2));
  static_cast<void>(take_extensions());
  for (std::uint64_t day = 1; day <= 14; ++day) {
    world_.clock().seconds += kLockDay;
    world_.store("d" + std::to_string(day), tree_of(1));
    EXPECT_EQ(take_extensions(), 0) << day;
  }
  world_.clock().seconds += 2 * kLockDay;
  world_.store("v3", tree_of(3));
  EXPECT_GT(take_extensions(), 0);
  EXPECT_GE(first_end(), 14.0);
  world_.store("v4", tree_of(1));
  EXPECT_EQ(take_extensions(), 0);
}

TEST_P(ObjectLocks, OfObjectsInUseNeverEndWhileVersionsAreSealed) {
  create(10);
  for (std::uint64_t i = 2; i < 20; ++i) {
    world_.clock().seconds += 3 * kLockDay;
    world_.store("v" + std::to_string(i), tree_of(i));
    const auto live =
        must(remote::check_objects(world_.path(), world_.options(true), world_.hooks()));
    EXPECT_TRUE(live.damages.empty())
        << i << " " << live.damages.front().object << " " << live.damages.front().what;
  }
}

TEST_P(ObjectLocks, AreAddedALittleAtATime) {
  world_.run([&] { return world_.create(); });
  for (std::uint64_t i = 1; i < 6; ++i) world_.store("v" + std::to_string(i), tree_of(i));
  world_.hooks().locks_at_once = 3;
  must(set_lock({.days = 30}));
  // One more is that of the trial, and a copy inside the store locks what it makes.
  EXPECT_LE(take_extensions(), 5);
  EXPECT_FALSE(must(remote::check_objects(world_.path(), world_.options(true), world_.hooks()))
                   .damages.empty());
  for (int round = 0; round < 40; ++round) {
    world_.store("r" + std::to_string(round), tree_of(1));
    EXPECT_LE(take_extensions(), 4);
  }
  EXPECT_TRUE(must(remote::check_objects(world_.path(), world_.options(true), world_.hooks()))
                  .damages.empty());
}

TEST_P(ObjectLocks, DelayTheRemovalOfGarbage) {
  create(30);
  world_.store("v2", tree_of(2));
  const auto before = world_.names_with("/seg/").size() + world_.names_with("/vol/").size();
  world_.erase({"v1"});
  world_.arrange();
  const auto data = [&] {
    return world_.names_with("/seg/").size() + world_.names_with("/vol/").size();
  };
  world_.clock().seconds += 3 * kLockDay;  // Longer than objects without locks stay.
  const auto removals = world_.counts(bucket::RequestKind::kRemove).requests;
  for (int round = 0; round < 3; ++round) {
    world_.store("r" + std::to_string(round), tree_of(2));
    EXPECT_GE(data(), before);
  }
  EXPECT_EQ(world_.counts(bucket::RequestKind::kRemove).requests, removals);
  const auto locked = data();
  world_.clock().seconds += 30 * kLockDay;
  world_.store("last", tree_of(2));
  EXPECT_LT(data(), locked);
  world_.expect_versions();
}

TEST_P(ObjectLocks, ThatTheFolderDoesNotKnowPostponeARemoval) {
  create(30);
  world_.store("v2", tree_of(2));
  world_.erase({"v1"});
  world_.arrange();
  // Another program has extended all locks.
  for (auto& [name, object] : world_.objects().objects) {
    if (object.locked_until != 0) object.locked_until += 100 * kLockDay;
  }
  world_.clock().seconds += 33 * kLockDay;
  const auto removals = world_.counts(bucket::RequestKind::kRemove).requests;
  for (int round = 0; round < 5; ++round) {
    world_.store("r" + std::to_string(round), tree_of(2));
  }
  // Each object is tried once in a day.
  EXPECT_LE(world_.counts(bucket::RequestKind::kRemove).requests, removals + 16);
  world_.clock().seconds += 101 * kLockDay;
  const auto before = world_.names_with("/");
  world_.store("last", tree_of(2));
  const auto after = world_.names_with("/");
  EXPECT_FALSE(std::ranges::includes(after, before));
  world_.expect_versions();
}

TEST_P(ObjectLocks, AreRefusedWhereTheStoreHasNone) {
  world_.objects().has_locks = false;
  world_.object_lock.days = 30;
  const auto made = world_.create();
  EXPECT_EQ(code_of(made), ErrorCode::kUnsupported);
  EXPECT_NE(made.error().message().find("object-lock-enabled"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(world_.path()));
  EXPECT_TRUE(world_.names_with("varve.repo").empty());

  world_.object_lock = {};
  world_.run([&] { return world_.create(); });
  world_.store("v1", tree_of(1));
  EXPECT_EQ(code_of(set_lock({.days = 30})), ErrorCode::kUnsupported);
  world_.store("v2", tree_of(2));
}

TEST_P(ObjectLocks, AreSetByAFolderThatTakesOver) {
  create(30);
  const auto folder = world_.path() + "-second";
  must(repo::attach_to_store({.place = "s3://memory/p"}, folder, world_.options(true),
                             world_.hooks(), AttachRole::kWrites));
  EXPECT_GE(first_end(), 30.0);
  world_.objects().has_locks = false;
  EXPECT_EQ(
      code_of(repo::attach_to_store({.place = "s3://memory/p"}, world_.path() + "-third",
                                    world_.options(true), world_.hooks(), AttachRole::kWrites)),
      ErrorCode::kUnsupported);
}

TEST_P(ObjectLocks, ThatAreLostAreFoundByACheckAndSetAgain) {
  create(30);
  world_.store("v2", tree_of(2));
  for (auto& [name, object] : world_.objects().objects) {
    if (name.find("/seg/") != std::string::npos) object.locked_until = 0;
  }
  const auto check =
      must(remote::check_objects(world_.path(), world_.options(true), world_.hooks()));
  ASSERT_EQ(check.damages.size(), world_.names_with("/seg/").size());
  EXPECT_EQ(check.damages.front().what, "is not locked");
  EXPECT_EQ(check.notes.size(), 1);
  world_.store("v3", tree_of(3));
  EXPECT_TRUE(must(remote::check_objects(world_.path(), world_.options(true), world_.hooks()))
                  .damages.empty());
}

// An earlier release creates heads, and notes ends of locks, without the order.
TEST_P(ObjectLocks, AreOrderedAgainAfterAnEarlierRelease) {
  create(30);
  world_.store("v2", tree_of(2));
  const auto files = io::make_posix_file_system();
  const auto change_state = [&](const std::function<void(remote::ReplicaState&)>& change) {
    auto state = must(remote::ReplicaState::open(*files, world_.path(), false));
    change(state);
  };
  std::uint64_t examined = 0;
  world_.hooks().locks_extended = [&](const remote::LockReport& done) { examined = done.examined; };
  std::size_t objects = 0;
  change_state([&](remote::ReplicaState& state) {
    const auto ends = must(state.locks().ends());
    objects = ends.size();
    for (const auto& [name, end] : ends) {
      must(state.set_number("locked " + name, static_cast<std::uint64_t>(end + 10 * kLockDay)));
    }
  });
  static_cast<void>(take_extensions());
  world_.clock().seconds += 20 * kLockDay;
  world_.store("v3", tree_of(1));
  EXPECT_GE(examined, objects);
  EXPECT_EQ(take_extensions(), 0);
  world_.store("v4", tree_of(1));
  EXPECT_LT(examined, 20U);
  change_state([](remote::ReplicaState& state) { must(state.set_number("locks ordered", 1)); });
  world_.store("v5", tree_of(1));
  EXPECT_GE(examined, objects);
  world_.store("v6", tree_of(1));
  EXPECT_LT(examined, 20U);
}

std::unique_ptr<World> locked_world(bool is_encrypted, Mishap mishap, std::uint64_t at) {
  auto world = std::make_unique<World>(is_encrypted, mishap, at);
  world->objects().has_locks = true;
  world->object_lock.days = 30;
  return world;
}

std::vector<SteppedHistory::Step> locked_steps() {
  std::vector<SteppedHistory::Step> steps;
  steps.emplace_back([](World& world) { world.run([&] { return world.create(); }); });
  for (std::uint64_t i = 1; i < 5; ++i) {
    steps.emplace_back([i](World& world) { world.store("v" + std::to_string(i), tree_of(i)); });
  }
  steps.emplace_back([](World& world) { world.erase({"v1"}); });
  steps.emplace_back([](World& world) { world.arrange(); });
  for (std::uint64_t i = 5; i < 8; ++i) {
    steps.emplace_back([i](World& world) {
      world.clock().seconds += 20 * kLockDay;
      world.store("v" + std::to_string(i), tree_of(i));
    });
    // The locks of what was uploaded last may be known to the next process only.
    steps.emplace_back([i](World& world) { world.store("w" + std::to_string(i), tree_of(i)); });
  }
  return steps;
}

TEST_P(ObjectLocks, OfObjectsThatAKilledProcessUploadedAreExtended) {
  SteppedHistory history(
      [](Mishap mishap, std::uint64_t at) { return locked_world(GetParam(), mishap, at); },
      locked_steps());
  for (std::uint64_t at = 2; at < history.whole().requests(); at += 9) {
    const auto world = history.play(Mishap::kKilledAfter, at);
    const auto check =
        must(remote::check_objects(world->path(), world->options(true), world->hooks()));
    for (const auto& damage : check.damages) {
      ADD_FAILURE() << damage.object << " " << damage.what << world->where();
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Plain, ObjectLocks, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ObjectLocks, testing::Values(true));

}  // namespace
}  // namespace varve::test
