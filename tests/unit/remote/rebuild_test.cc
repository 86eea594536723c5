// SPDX-License-Identifier: Apache-2.0
// The store has lost its heads and catalog objects, and parts of the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>

#include "world.h"

namespace varve::test {
namespace {

class ReplicaRebuild : public testing::TestWithParam<std::tuple<bool, Placement>> {
 protected:
  ReplicaRebuild() : world_(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam())) {
    world_.run([&] { return world_.create(); });
    for (std::uint64_t i = 1; i < 5; ++i) {
      world_.store("v" + std::to_string(i), tree_of(10 + i));
      world_.clock().seconds += 60;
    }
    world_.arrange();
    world_.erase({"v2"});
    for (const auto* const part : {"/head/", "/cat/"}) {
      for (const auto& name : world_.names_with(part)) world_.objects().objects.erase(name);
    }
  }

  Result<StoreRebuild> rebuild(AttachRole role, bool accept_older = true) {
    auto options = world_.options(true);
    options.accept_older = accept_older;
    return repo::rebuild_from_store({.place = "s3://memory/p"}, folder_, options, world_.hooks(),
                                    role);
  }
  Versions versions(bool read_only) {
    const auto repository =
        must(repo::RepositoryImpl::open(folder_, world_.options(read_only), world_.hooks()));
    return World::read_all_versions(*repository);
  }

  World world_;
  const std::string folder_ = world_.path() + "-rebuilt";
};

TEST_P(ReplicaRebuild, AllVersionsComeBack) {
  const auto objects = world_.objects().objects.size();
  const auto rebuilt = must(rebuild(AttachRole::kReads));
  for (const auto& problem : rebuilt.problems) ADD_FAILURE() << problem;
  EXPECT_EQ(rebuilt.versions, world_.local().size());
  EXPECT_TRUE(versions(true) == world_.local());
  EXPECT_EQ(world_.objects().objects.size(), objects);
  EXPECT_EQ(code_of(rebuild(AttachRole::kReads)), ErrorCode::kNotEmpty);
}

TEST_P(ReplicaRebuild, TheFolderWrites) {
  EXPECT_EQ(code_of(rebuild(AttachRole::kWrites, false)), ErrorCode::kCorrupt);
  must(rebuild(AttachRole::kWrites));
  EXPECT_TRUE(versions(false) == world_.local());
  world_.expect_versions();
}

// The folder of the former writer knows a head that the store has lost.
TEST_P(ReplicaRebuild, TheFormerWriterPutsNoHeadBack) {
  must(rebuild(AttachRole::kWrites));
  const auto heads = world_.heads();
  ASSERT_EQ(heads.size(), 1U);
  EXPECT_TRUE(heads.begin()->ends_with("/head/0001000001")) << *heads.begin();
  RepairOptions options;
  options.read_store = true;
  if (std::get<0>(GetParam())) options.key = [] { return Result<UserKey>(test_key()); };
  const auto plan = repo::plan_repair(world_.path(), options, false, {}, world_.hooks());
  if (plan && !(*plan)->steps().empty()) {
    EXPECT_EQ(code_of((*plan)->execute({})), ErrorCode::kLocked);
  }
  EXPECT_EQ(world_.heads(), heads);
}

// A process may be killed after the last change, and before it removes the mark.
TEST_P(ReplicaRebuild, AMarkDisturbsNoFolderThatWrites) {
  must(rebuild(AttachRole::kWrites));
  std::ofstream(folder_ + "/rebuilding.tmp").close();
  must(repo::attach_to_store({.place = "s3://memory/p"}, folder_, world_.options(true),
                             world_.hooks(), AttachRole::kWrites));
  EXPECT_TRUE(versions(false) == world_.local());
  const auto reader = folder_ + "-reader";
  must(repo::attach_to_store({.place = "s3://memory/p"}, reader, world_.options(true),
                             world_.hooks()));
  std::ofstream(reader + "/rebuilding.tmp").close();
  EXPECT_EQ(code_of(repo::attach_to_store({.place = "s3://memory/p"}, reader, world_.options(true),
                                          world_.hooks())),
            ErrorCode::kExists);
}

// A lost copy or original of a small file costs nothing.
TEST_P(ReplicaRebuild, OneOfTwoCopiesIsEnough) {
  bool takes_copy = false;
  for (const auto& name : world_.names_with("/other/")) {
    if (name.ends_with(".copy")) continue;
    takes_copy = !takes_copy;
    if (takes_copy) world_.objects().objects.erase(name + ".copy");
    auto& bytes = world_.objects().objects.at(name).bytes;
    if (!takes_copy) bytes[bytes.size() / 2] ^= std::byte{1};
  }
  must(rebuild(AttachRole::kReads));
  EXPECT_TRUE(versions(true) == world_.local());
}

// A lost manifest costs versions, with a word. All other files that are read have their bytes.
TEST_P(ReplicaRebuild, EachLostSmallFileCostsAWordAtMost) {
  for (const auto& name : world_.names_with("/other/")) {
    if (name.ends_with(".copy")) continue;
    SCOPED_TRACE(name);
    const auto kept = world_.objects().objects;
    world_.objects().objects.erase(name);
    world_.objects().objects.erase(name + ".copy");
    const auto rebuilt = rebuild(AttachRole::kReads);
    if (rebuilt) {
      const auto repository =
          must(repo::RepositoryImpl::open(folder_, world_.options(true), world_.hooks()));
      std::size_t whole = 0;
      for (const auto& version :
           must(repository->versions(must(repository->series()).front().id))) {
        whole += world_.local().contains(version.name) ? 1 : 0;
      }
      if (whole < world_.local().size()) {
        EXPECT_FALSE(rebuilt->problems.empty());
      }
    }
    std::filesystem::remove_all(folder_);
    world_.objects().objects = kept;
  }
}

// A damaged header costs its container, with a word. No version gets other bytes.
TEST_P(ReplicaRebuild, ADamagedHeaderCostsItsContainer) {
  const auto data = world_.names_with("/seg/");
  ASSERT_FALSE(data.empty());
  const auto whole = world_.objects().objects;
  for (const std::size_t bytes : {1U, 100U}) {
    for (const auto& name : data) {
      SCOPED_TRACE(name + " " + std::to_string(bytes));
      auto& header = world_.objects().objects.at(name).bytes;
      for (std::size_t i = 0; i < bytes; ++i) header[13 + i] ^= std::byte{1};
      const auto rebuilt = must(rebuild(AttachRole::kReads));
      EXPECT_FALSE(rebuilt.problems.empty());
      {
        const auto repository =
            must(repo::RepositoryImpl::open(folder_, world_.options(true), world_.hooks()));
        const auto series = must(repository->series()).front().id;
        for (const auto& version : must(repository->versions(series))) {
          const auto reader = must(repository->reader(series, version.number));
          for (const auto& [file, content] : world_.local().at(version.name)) {
            try {
              EXPECT_EQ(read_sealed(*reader, file), content);
            } catch (const std::runtime_error&) {
              continue;  // Lost.
            }
          }
        }
      }
      std::filesystem::remove_all(folder_);
      world_.objects().objects = whole;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReplicaRebuild,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Placement::kLineage, Placement::kPool)));

}  // namespace
}  // namespace varve::test
