// SPDX-License-Identifier: Apache-2.0
// Objects of the store are removed, changed and cut short. The folder that
// writes has all data, so a repair brings every one of them back.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "campaign.h"
#include "remote/check_store.h"
#include "remote/head.h"
#include "world.h"

namespace varve::test {
namespace {

enum class Harm : std::uint8_t { kRemoved, kChanged, kShortened };

class ReplicaStoreRepair : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    world_.run([&] { return world_.create(); });
    for (std::uint64_t i = 1; i < 4; ++i) world_.store("v" + std::to_string(i), tree_of(10 + i));
    world_.arrange();
    world_.erase({"v2"});
  }

  void harm(const std::string& name, Harm harm) {
    auto& objects = world_.objects().objects;
    if (harm == Harm::kRemoved) {
      objects.erase(name);
      return;
    }
    auto& bytes = objects.at(name).bytes;
    if (harm == Harm::kChanged && !bytes.empty()) bytes[bytes.size() / 2] ^= std::byte{1};
    if (harm == Harm::kShortened) bytes.resize(bytes.size() / 2);
  }

  Result<std::size_t> repair() {
    RepairOptions options;
    options.read_data = true;
    options.read_store = true;
    if (GetParam()) options.key = [] { return Result<UserKey>(test_key()); };
    std::size_t steps = 0;
    {
      VARVE_TRY_ASSIGN(const auto plan,
                       repo::plan_repair(world_.path(), options, false, {}, world_.hooks()));
      steps = plan->steps().size();
      if (steps != 0) VARVE_TRY(plan->execute({}));
    }
    VARVE_TRY(world_.with([](Repository&) {}));  // Uploads.
    return steps;
  }

  [[nodiscard]] StoreCheck check() {
    return must(remote::check_objects(world_.path(), world_.options(true), world_.hooks(), true));
  }

  World world_{GetParam(), Mishap::kNone, 0};
};

TEST_P(ReplicaStoreRepair, EveryObjectComesBack) {
  std::size_t harmed = 0, turn = 0;
  for (const auto how : {Harm::kRemoved, Harm::kChanged, Harm::kShortened}) {
    for (const auto& name : world_.names_with("")) {
      // Reading an encrypted repository takes longer: each object is harmed in one way.
      if (GetParam() && turn++ % 3 != static_cast<std::size_t>(how)) continue;
      SCOPED_TRACE(name + " " + std::to_string(static_cast<int>(how)));
      if (!world_.objects().objects.contains(name)) continue;
      const auto kept = world_.objects().objects.at(name);
      harm(name, how);
      const auto damages = check().damages;
      const bool is_needed = !damages.empty();
      std::set<std::string> told;
      for (const auto& damage : damages) EXPECT_TRUE(told.insert(damage.object).second);
      harmed += is_needed;
      EXPECT_EQ(must(repair()) != 0, is_needed);
      for (const auto& damage : check().damages) ADD_FAILURE() << damage.object << damage.what;
      world_.expect_versions();
      // Objects that nothing needs stay as they are.
      if (!is_needed) world_.objects().objects[name] = kept;
    }
  }
  EXPECT_GT(harmed, GetParam() ? 5U : 10U);
  world_.expect_here();
  world_.store("v5", tree_of(15));
  world_.expect_versions();
}

TEST_P(ReplicaStoreRepair, EverythingComesBackIntoAnEmptyBucket) {
  world_.objects().objects.clear();
  EXPECT_NE(must(repair()), 0U);
  EXPECT_TRUE(check().damages.empty());
  world_.store("v5", tree_of(15));
  world_.expect_versions();
}

// The head of another writer has the number of the lost head.
TEST_P(ReplicaStoreRepair, HeadOfAnotherWriterStays) {
  const auto heads = world_.heads();
  // Without the head's catalog objects, nothing shows the lost head (docs/decisions/161).
  const auto catalog_of = [&](const std::string& name) {
    std::set<std::string> names;
    const auto& bytes = world_.objects().objects.at(name).bytes;
    for (const auto& object : must(remote::decode_head(base::as_text(bytes))).catalog) {
      names.insert("p/" + object.name);
    }
    return names;
  };
  auto lost = catalog_of(*heads.rbegin());
  for (const auto& name : catalog_of(*std::next(heads.rbegin()))) lost.erase(name);
  lost.insert(*heads.rbegin());
  for (const auto& name : lost) {
    world_.objects().objects.erase(name);
    world_.objects().objects.erase(name + ".copy");
  }
  const auto second = world_.path() + "-second";
  must(repo::attach_to_store({.place = "s3://memory/p"}, second, world_.options(true),
                             world_.hooks(), AttachRole::kWrites));
  const auto objects = world_.objects().objects;
  ASSERT_TRUE(objects.contains(*heads.rbegin()));
  EXPECT_EQ(code_of(repair()), ErrorCode::kLocked);
  EXPECT_EQ(world_.objects().objects.at(*heads.rbegin()).bytes, objects.at(*heads.rbegin()).bytes);
}

INSTANTIATE_TEST_SUITE_P(Plain, ReplicaStoreRepair, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ReplicaStoreRepair, testing::Values(true));

}  // namespace
}  // namespace varve::test
