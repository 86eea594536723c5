// SPDX-License-Identifier: Apache-2.0
// Checks find replaced objects by their ETags, and the folder notes the results of checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>

#include "io/posix_file_system.h"
#include "remote/check_store.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "remote/small_copies.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"
#include "world.h"

namespace varve::test {
namespace {

using DamagedNames = std::set<std::string>;

class StoreEtags : public testing::TestWithParam<bool> {
 protected:
  void fill() {
    world_.run([&] { return world_.create(); });
    world_.store("v1", tree_of(1));
    world_.store("v2", tree_of(2));
  }
  [[nodiscard]] std::string segment() { return *world_.names_with("/seg/").begin(); }
  // Another program writes an object of the same length.
  void replace(const std::string& name) {
    auto bytes = world_.objects().objects.at(name).bytes;
    bytes[bytes.size() / 2] ^= std::byte{1};
    const std::array<std::span<const std::byte>, 1> parts{bytes};
    MemoryBucket other(world_.shared_objects(), {}, &world_.clock());
    must(other.put(name, parts, {}));
  }
  void change_all_etags() {
    for (auto& [name, object] : world_.objects().objects) object.etag += "-moved";
  }
  StoreCheck check(const std::string& folder, bool reads_all = false) {
    return must(remote::check_objects(folder, world_.options(true), world_.hooks(), reads_all));
  }
  static DamagedNames damaged(const StoreCheck& check) {
    DamagedNames names;
    for (const auto& damage : check.damages) names.insert("p/" + damage.object);
    return names;
  }
  remote::Etags noted(const std::string& folder) {
    return must(must(remote::find_state(*io::make_posix_file_system(), folder))->etags().all());
  }
  /// Returns the copies of the small objects that the newest head needs, and of the head.
  DamagedNames needed_copies() {
    const auto state = must(remote::find_state(*io::make_posix_file_system(), world_.path()));
    const auto head = must(remote::decode_head(*must(state->head())));
    DamagedNames names{"p/" + remote::head_name(head.repository_id, head.number) + ".copy"};
    for (const auto& object : remote::small_objects(head, must(state->objects()))) {
      names.insert("p/" + object.name + ".copy");
    }
    return names;
  }
  std::string attach() {
    const auto folder = world_.path() + "-attached";
    must(repo::attach_to_store({.place = "s3://memory/p"}, folder, world_.options(true),
                               world_.hooks()));
    return folder;
  }
  std::vector<EarlierCheck> recorded(const std::string& folder) {
    return must(RemoteFolder(folder).info())->checks;
  }
  std::size_t repair() {
    RepairOptions options;
    if (GetParam()) options.key = [] { return Result<UserKey>(test_key()); };
    std::size_t steps = 0;
    {
      const auto plan = must(repo::plan_repair(world_.path(), options, false, {}, world_.hooks()));
      steps = plan->steps().size();
      if (steps != 0) must(plan->execute({}));
    }
    must(world_.with([](Repository&) {}));  // Uploads.
    return steps;
  }

  World world_{GetParam(), Mishap::kNone, 0};
};

TEST_P(StoreEtags, AReplacedSegmentIsFoundByARoutineCheckAndRepaired) {
  fill();
  EXPECT_TRUE(check(world_.path()).damages.empty());
  replace(segment());
  const auto found = check(world_.path());
  EXPECT_EQ(damaged(found), DamagedNames{segment()});
  EXPECT_GT(repair(), 0U);
  EXPECT_TRUE(check(world_.path()).damages.empty());
  world_.expect_versions();
}

TEST_P(StoreEtags, NotesOfUploadsNeedNoEarlierCheck) {
  fill();
  EXPECT_EQ(noted(world_.path()).size(), world_.names_with("/seg/").size());
  check(world_.path());  // Tries whether lists show the ETags.
  replace(segment());
  EXPECT_EQ(damaged(check(world_.path())), DamagedNames{segment()});
}

TEST_P(StoreEtags, AnAttachedFolderComparesWithTheFirstCheck) {
  fill();
  const auto folder = attach();
  EXPECT_TRUE(check(folder).damages.empty());
  EXPECT_EQ(noted(folder), noted(world_.path()));
  replace(segment());
  EXPECT_EQ(damaged(check(folder)), DamagedNames{segment()});
}

TEST_P(StoreEtags, OtherEtagsOfRightBytesAreNoDamage) {
  fill();
  const auto folder = attach();
  for (const auto& path : {world_.path(), folder}) check(path);
  change_all_etags();
  for (const auto& path : {world_.path(), folder}) {
    const auto first = check(path);
    EXPECT_TRUE(first.damages.empty());
    EXPECT_EQ(first.notes.size(), 1U);
    EXPECT_TRUE(check(path).notes.empty());
  }
  replace(segment());
  EXPECT_EQ(damaged(check(world_.path())), DamagedNames{segment()});
}

TEST_P(StoreEtags, AStoreWithoutEtagsIsCheckedAsBefore) {
  world_.objects().gives_etags = false;
  fill();
  EXPECT_TRUE(check(world_.path()).damages.empty());
  EXPECT_TRUE(noted(world_.path()).empty());
  // The store begins to show ETags.
  world_.objects().gives_etags = true;
  for (auto& [name, object] : world_.objects().objects) object.etag = "new";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(check(world_.path()).damages.empty());
}

TEST_P(StoreEtags, OfDroppedObjectsAreForgotten) {
  fill();
  check(world_.path());
  world_.arrange();
  world_.erase({"v1"});
  world_.clock().seconds += 2 * 24 * 60 * 60;
  world_.store("v3", tree_of(3));
  check(world_.path());
  for (const auto& [name, etag] : noted(world_.path())) {
    EXPECT_TRUE(world_.objects().objects.contains("p/" + name)) << name;
  }
}

TEST_P(StoreEtags, TheResultOfAStoresCheckIsNotedUntilARepairOrACheckWithoutDamage) {
  fill();
  EXPECT_TRUE(recorded(world_.path()).empty());
  world_.objects().objects.erase(segment());
  check(world_.path());
  ASSERT_EQ(recorded(world_.path()).size(), 1U);
  EXPECT_EQ(recorded(world_.path()).front().damages, 1U);
  repair();
  EXPECT_EQ(recorded(world_.path()).front().damages, 0U);
  // A list does not show this damage, and so does not tell that it is gone.
  auto& bytes = world_.objects().objects.at(segment()).bytes;
  bytes[100] ^= std::byte{1};
  check(world_.path(), true);
  check(world_.path());
  ASSERT_EQ(recorded(world_.path()).size(), 2U);
  EXPECT_EQ(recorded(world_.path()).back(),
            (EarlierCheck{CheckDepth::kData, world_.clock().now().seconds, 1}));
  bytes[100] ^= std::byte{1};
  check(world_.path(), true);
  EXPECT_EQ(recorded(world_.path()).size(), 1U);
  EXPECT_EQ(recorded(world_.path()).front().damages, 0U);
}

// The store keeps no versions, and so refuses to replace a locked copy.
TEST_P(StoreEtags, ALockedDamagedCopyIsReplacedUnderAnotherName) {
  world_.objects().has_locks = true;
  world_.object_lock.days = 30;
  fill();
  for (const auto* const folder : {"/cat/", "/other/", "/head/"}) {
    const auto copies = needed_copies();
    const auto copy = std::ranges::find_if(
        copies, [&](const auto& name) { return name.find(folder) != std::string::npos; });
    ASSERT_NE(copy, copies.end());
    world_.objects().objects.at(*copy).bytes[5] ^= std::byte{1};
    EXPECT_EQ(damaged(check(world_.path())), DamagedNames{*copy});
    EXPECT_GT(repair(), 0U);
    EXPECT_TRUE(check(world_.path()).damages.empty()) << *copy;
  }
}

// A writer was killed after it had created its head.
TEST_P(StoreEtags, AHeadWithoutItsCopyIsNoDamageInAnAttachedFolder) {
  fill();
  const auto folder = attach();
  const auto copy = *world_.names_with("/head/").rbegin();
  ASSERT_TRUE(copy.ends_with(".copy"));
  const auto object = world_.objects().objects.at(copy);
  world_.objects().objects.erase(copy);
  const auto found = check(folder);
  EXPECT_TRUE(found.damages.empty());
  EXPECT_EQ(found.notes.size(), 1U);
  EXPECT_EQ(damaged(check(world_.path())), DamagedNames{copy});
  // Other copies are needed at once.
  world_.objects().objects.erase(*needed_copies().rbegin());
  EXPECT_EQ(damaged(check(folder)).size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Plain, StoreEtags, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, StoreEtags, testing::Values(true));

}  // namespace
}  // namespace varve::test
