// SPDX-License-Identifier: Apache-2.0
// A folder that is attached for reading puts lost objects of the store back, with the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "remote/changes.h"
#include "remote/check_store.h"
#include "remote/head.h"
#include "stored_catalog.h"
#include "world.h"

namespace varve::test {
namespace {

using Bytes = std::map<std::string, std::vector<std::byte>>;

class ReplicaReaderRepair : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    world_.run([&] { return world_.create(); });
    for (std::uint64_t i = 1; i < 4; ++i) world_.store("v" + std::to_string(i), tree_of(10 + i));
    world_.arrange();
    world_.erase({"v2"});
    must(attach(AttachRole::kReads));
    read();
  }

  Result<void> attach(AttachRole role) {
    return repo::attach_to_store({.place = "s3://memory/p"}, keeper_, world_.options(true),
                                 world_.hooks(), role);
  }
  // Fills the cache.
  void read() {
    const auto repository =
        must(repo::RepositoryImpl::open(keeper_, world_.options(true), world_.hooks()));
    EXPECT_TRUE(World::read_all_versions(*repository) == world_.local());
  }
  Bytes bytes() const {
    Bytes bytes;
    for (const auto& [name, object] : const_cast<World&>(world_).objects().objects) {
      bytes[name] = object.bytes;
    }
    return bytes;
  }
  void lose(const std::string& name) { world_.objects().objects.erase(name); }
  void lose_with_copy(const std::string& name) {
    lose(name);
    lose(name + ".copy");
  }
  static bool has(const std::string& name, const std::string& part) {
    return name.find(part) != std::string::npos;
  }

  Result<std::size_t> repair(std::vector<std::string>* problems = nullptr) {
    RepairOptions options;
    options.read_store = true;
    if (GetParam()) options.key = [] { return Result<UserKey>(test_key()); };
    VARVE_TRY_ASSIGN(const auto plan,
                     repo::plan_repair(keeper_, options, false, {}, world_.hooks()));
    const auto steps = plan->steps().size();
    if (steps == 0) return steps;
    VARVE_TRY_ASSIGN(const auto report, plan->execute({}));
    if (problems != nullptr) *problems = report.problems;
    return steps;
  }
  [[nodiscard]] StoreCheck check() {
    return must(remote::check_objects(keeper_, world_.options(true), world_.hooks(), true));
  }

  World world_{GetParam(), Mishap::kNone, 0};
  const std::string keeper_ = world_.path() + "-keeper";
};

TEST_P(ReplicaReaderRepair, EachObjectComesBackWithTheSameBytes) {
  const auto whole = bytes();
  std::size_t harmed = 0;
  for (const bool removes : {true, false}) {
    for (const auto& [name, before] : whole) {
      SCOPED_TRACE(name);
      auto& objects = world_.objects().objects;
      if (removes) lose(name);
      if (!removes && !before.empty()) objects.at(name).bytes[before.size() / 2] ^= std::byte{1};
      const bool is_needed = !check().damages.empty();
      // A repair also puts back what a check only notes, such as the copy of the newest head.
      const bool has_repaired = must(repair()) != 0;
      EXPECT_TRUE(has_repaired || !is_needed);
      harmed += is_needed;
      if (is_needed && name != "varve.repo") {
        ASSERT_TRUE(objects.contains(name));
        EXPECT_TRUE(objects.at(name).bytes == before);
      }
      for (const auto& damage : check().damages) ADD_FAILURE() << damage.object << damage.what;
      objects[name].bytes = before;
    }
  }
  EXPECT_GT(harmed, 20U);
  world_.expect_versions();
}

// All objects but those of the catalog and of manifests are lost together, with their copies. The
// folder leaves manifests in the store (docs/decisions/162).
TEST_P(ReplicaReaderRepair, AllButTheCatalogComesBack) {
  std::set<std::string> left;
  for (const auto& [key, value] : records_of_head(world_, newest_head(world_))) {
    if (key.first != remote::kObjectsTable) continue;
    const auto record = must(remote::decode_extent(key.second, value));
    if (!has(record.path, "/manifests/")) continue;
    left.insert("p/" + record.extent.object);
    left.insert("p/" + record.extent.object + ".copy");
  }
  EXPECT_FALSE(left.empty());
  std::erase_if(world_.objects().objects, [&left](const auto& one) {
    return !has(one.first, "/cat/") && !left.contains(one.first);
  });
  EXPECT_NE(must(repair()), 0U);
  EXPECT_TRUE(check().damages.empty());
  world_.expect_versions();
  EXPECT_EQ(world_.heads().size(), 1U);
}

TEST_P(ReplicaReaderRepair, ALostCatalogObjectNeedsAPromotion) {
  for (const auto& name : world_.names_with("/cat/")) lose(name);
  const auto before = world_.objects().objects.size();
  const auto refused = repair();
  EXPECT_EQ(code_of(refused), ErrorCode::kReadOnly);
  EXPECT_NE(refused.error().message().find("varve attach --write s3://memory/p " + keeper_),
            std::string::npos)
      << refused.error().message();
  EXPECT_EQ(world_.objects().objects.size(), before);
  // The other objects come back nevertheless.
  for (const auto& name : world_.names_with("/other/")) {
    if (!name.ends_with(".copy")) lose(name);
  }
  std::vector<std::string> problems;
  EXPECT_NE(must(repair(&problems)), 0U);
  EXPECT_EQ(problems.size(), 1U);
  for (const auto& damage : check().damages) EXPECT_TRUE(has(damage.object, "/cat/"));
  must(attach(AttachRole::kWrites));
  world_.expect_versions();
}

TEST_P(ReplicaReaderRepair, TheHeadOfAnotherWriterStays) {
  lose_with_copy(*world_.heads().rbegin());
  const auto second = world_.path() + "-second";
  auto options = world_.options(true);
  options.accept_older = true;
  must(repo::attach_to_store({.place = "s3://memory/p"}, second, options, world_.hooks(),
                             AttachRole::kWrites));
  const auto before = bytes();
  EXPECT_FALSE(repair());
  EXPECT_TRUE(bytes() == before);
}

// The keeper first follows the writer.
TEST_P(ReplicaReaderRepair, AStaleFolderRepairsTheNewestState) {
  world_.store("v4", tree_of(20));
  const auto whole = bytes();
  for (const auto& name : world_.names_with("/other/")) {
    if (!name.ends_with(".copy")) lose(name);
  }
  EXPECT_NE(must(repair()), 0U);
  EXPECT_TRUE(check().damages.empty());
  world_.expect_versions();
  EXPECT_EQ(must(repair()), 0U);
}

// The folder has become the writer's folder. Its segments are in the cache only.
TEST_P(ReplicaReaderRepair, APromotedFolderUploadsWhatItsCacheHas) {
  must(attach(AttachRole::kWrites));
  const auto data = world_.names_with("/seg/");
  ASSERT_FALSE(data.empty());
  const auto whole = bytes();
  for (const auto& name : data) lose(name);
  for (const auto& name : world_.names_with("/other/")) lose(name);
  for (const auto& name : world_.names_with("/cat/")) lose(name);
  EXPECT_NE(must(repair()), 0U);
  must(must(repo::RepositoryImpl::open(keeper_, world_.options(), world_.hooks()))->close());
  EXPECT_TRUE(check().damages.empty());
  for (const auto& name : data) {
    if (!world_.objects().objects.contains(name)) continue;
    EXPECT_TRUE(bytes().at(name) == whole.at(name));
  }
  world_.expect_versions();
}

INSTANTIATE_TEST_SUITE_P(Plain, ReplicaReaderRepair, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ReplicaReaderRepair, testing::Values(true));

}  // namespace
}  // namespace varve::test
