// SPDX-License-Identifier: Apache-2.0
// The creation of a repository in an object store is interrupted at any request. The folder is then
// no local repository, which would keep backups to itself, and the same creation completes it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "varve/remote_folder.h"
#include "world.h"

namespace varve::test {
namespace {

ErrorCode code_of_opening(World& world) {
  return code_of(repo::RepositoryImpl::open(world.path(), world.options(), world.hooks()));
}

class CreationInStore : public testing::TestWithParam<bool> {};

TEST_P(CreationInStore, ThatIsInterruptedLeavesNoLocalRepository) {
  std::uint64_t all = 0;
  {
    World whole(GetParam(), Mishap::kNone, 0);
    must(whole.create());
    all = whole.requests();
  }
  ASSERT_GT(all, 3U);
  std::uint64_t unconnected = 0;
  for (const auto mishap : {Mishap::kBefore, Mishap::kLost}) {
    for (std::uint64_t at = 0; at < all; ++at) {
      World world(GetParam(), mishap, at);
      const bool interrupted = !world.create();
      if (interrupted) {
        EXPECT_EQ(code_of_opening(world), ErrorCode::kNoRepository) << world.where();
        unconnected += std::filesystem::exists(world.path() + "/varve.repo");
        must(world.create());
      }
      const auto info = must(RemoteFolder(world.path()).info());
      ASSERT_TRUE(info) << world.where();
      EXPECT_EQ(info->place, "s3://memory/p");
      EXPECT_FALSE(std::filesystem::exists(world.path() + "/connecting.tmp"));
      if (!interrupted) continue;
      world.store("v1", tree_of(1));
      world.expect_versions();
    }
  }
  EXPECT_GT(unconnected, 0U);
}

TEST_P(CreationInStore, BesideARepositoryWithoutItsSuperblockIsRefused) {
  World first(GetParam(), Mishap::kNone, 0);
  must(first.create());
  first.store("v1", tree_of(1));
  World second(GetParam(), Mishap::kNone, 0);
  second.hooks().open = first.hooks().open;
  first.objects().objects.erase("p/varve.repo");
  const auto made = second.create();
  EXPECT_EQ(code_of(made), ErrorCode::kExists);
  EXPECT_NE(made.error().message().find("choose another place"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(second.path() + "/varve.repo"));
  first.expect_versions();
  // Objects of other programs do no harm.
  std::erase_if(first.objects().objects,
                [](const auto& one) { return one.first.find("/head/") == std::string::npos; });
  auto& objects = first.objects().objects;
  objects["p/photos/head/1"] = objects.begin()->second;
  std::erase_if(objects, [](const auto& one) { return !one.first.starts_with("p/photos/"); });
  must(second.create());
}

// Arranging uploads what it writes, so it tolerates more dead space than in a local repository.
TEST(NewStore, ToleratesMoreDeadSpaceUnlessTold) {
  const auto dead_permille = [](World& world) {
    std::uint32_t permille = 0;
    must(world.with([&](Repository& repository) {
      permille = must(repository.arrange_settings()).dead_permille;
    }));
    return permille;
  };
  World usual(false, Mishap::kNone, 0);
  must(usual.create());
  EXPECT_EQ(dead_permille(usual), 200U);
  World chosen(false, Mishap::kNone, 0);
  CreateOptions options;
  options.settings.arrange = ArrangeSettings{.fan = 7};
  must(repo::create_in_store({.place = "s3://memory/p"}, chosen.path(), small_chunks(Codec::kNone),
                             options, chosen.hooks()));
  EXPECT_EQ(dead_permille(chosen), ArrangeSettings().dead_permille);
}

// Another machine creates its repository between the look at the place and the own creation.
TEST_P(CreationInStore, ThatLosesARaceLeavesNoLocalRepository) {
  World winner(GetParam(), Mishap::kNone, 0);
  World loser(GetParam(), Mishap::kNone, 0);
  bool won = false;
  loser.hooks().open = [&](const remote::BucketConfig&) {
    auto bucket = std::make_unique<MemoryBucket>(winner.shared_objects(), "p/", &loser.clock());
    bucket->set_faults([&](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
      if (kind == bucket::RequestKind::kPut && name == "varve.repo" && !std::exchange(won, true)) {
        must(winner.create());
      }
      return Fault::kNone;
    });
    return Result<std::unique_ptr<bucket::Bucket>>(std::move(bucket));
  };
  const auto lost = loser.create();
  EXPECT_EQ(code_of(lost), ErrorCode::kExists);
  EXPECT_NE(lost.error().message().find("can be removed"), std::string::npos);
  EXPECT_EQ(code_of_opening(loser), ErrorCode::kNoRepository);
  EXPECT_EQ(code_of(loser.create()), ErrorCode::kExists);
  winner.store("v1", tree_of(1));
  winner.expect_versions();
}

INSTANTIATE_TEST_SUITE_P(Plain, CreationInStore, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, CreationInStore, testing::Values(true));

// A wish for encryption is not forgotten because the folder is there already.
TEST(CreationInStoreAgain, NeedsTheKeyOfTheFolder) {
  for (const bool was_encrypted : {false, true}) {
    World world(true, Mishap::kNone, 0);
    CreateOptions other;
    if (was_encrypted) other.encryption = Encryption{.first_key = {.key = test_key('o')}};
    must(Repository::create(world.path(), small_chunks(Codec::kNone), other));
    EXPECT_EQ(code_of(world.create()), ErrorCode::kWrongKey) << was_encrypted;
    EXPECT_TRUE(world.names_with("varve.repo").empty());
  }
}

}  // namespace
}  // namespace varve::test
