// SPDX-License-Identifier: Apache-2.0
// Small objects of a store are removed, changed and cut short. Readers use the copies; without a
// copy, a small file costs nothing, and a head or a catalog object the versions sealed since.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/posix_file_system.h"
#include "remote/check_store.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "remote/small_copies.h"
#include "stored_catalog.h"
#include "world.h"

namespace varve::test {
namespace {

enum class Loss : std::uint8_t { kRemoved, kChanged, kShortened };

class SmallCopies : public testing::TestWithParam<bool> {
 protected:
  void fill() {
    world_.run([&] { return world_.create(); });
    for (const auto* const name : {"v1", "v2", "v3"}) world_.store(name, tree_of(++seed_));
  }
  void harm(const std::string& name, Loss loss) {
    auto& objects = world_.objects().objects;
    ASSERT_TRUE(objects.contains(name)) << name;
    auto& bytes = objects.at(name).bytes;
    if (loss == Loss::kChanged) bytes[bytes.size() / 2] ^= std::byte{1};
    if (loss == Loss::kShortened) bytes.resize(bytes.size() / 2);
    if (loss == Loss::kRemoved) objects.erase(name);
  }
  /// Returns the small objects that the newest head needs, with the head.
  std::vector<std::string> small_names() {
    const auto head = newest_head(world_);
    std::vector<std::string> names{remote::head_name(head.repository_id, head.number)};
    const auto state = must(remote::find_state(*io::make_posix_file_system(), world_.path()));
    for (const auto& object : remote::small_objects(head, must(state->objects()))) {
      names.push_back(object.name);
    }
    for (auto& name : names) name.insert(0, "p/");
    return names;
  }
  static bool is_in(const std::string& name, const std::string& folder) {
    return name.find("/" + folder + "/") != std::string::npos;
  }
  Result<void> attach(const std::string& folder, AttachRole role, bool accepts_older) {
    std::filesystem::remove_all(folder);
    auto how = world_.options(role == AttachRole::kReads);
    how.accept_older = accepts_older;
    return repo::attach_to_store({.place = "s3://memory/p"}, folder, how, world_.hooks(), role);
  }
  StoreCheck check(const std::string& folder) {
    return must(remote::check_objects(folder, world_.options(true), world_.hooks()));
  }
  static std::set<std::string> damaged(const StoreCheck& check) {
    std::set<std::string> names;
    for (const auto& damage : check.damages) names.insert("p/" + damage.object);
    return names;
  }
  Result<void> store(const std::string& folder_path, const std::string& name) {
    const auto repository =
        must(repo::RepositoryImpl::open(folder_path, world_.options(), world_.hooks()));
    const auto id = must(repository->find_series("s")).id;
    const auto number = must(repository->open_version(id, name, folder())).number;
    write_file(*must(repository->writer(id)), kRootIno, "file", name);
    must(repository->seal(id, number, ""));
    return repository->close();
  }
  // Brings the store and the folder to the state that an earlier release leaves.
  void forget_copies() {
    auto& objects = world_.objects().objects;
    std::erase_if(objects, [](const auto& one) { return one.first.ends_with(".copy"); });
    const auto files = io::make_posix_file_system();
    auto state = must(remote::ReplicaState::open(*files, world_.path(), false));
    must(remote::note_copies(state, 0));
  }

  World world_{GetParam(), Mishap::kNone, 0};
  std::uint64_t seed_ = 0;
};

TEST_P(SmallCopies, EachLostObjectIsReadFromItsCopy) {
  fill();
  std::size_t turn = 0;
  for (const auto& name : small_names()) {
    for (const auto loss : {Loss::kRemoved, Loss::kChanged, Loss::kShortened}) {
      if (GetParam() && turn++ % 3 != static_cast<std::size_t>(loss)) continue;
      SCOPED_TRACE(name + " " + std::to_string(static_cast<int>(loss)));
      for (const auto& harmed : {name, name + ".copy"}) {
        const auto kept = world_.objects().objects.at(harmed);
        harm(harmed, loss);
        EXPECT_EQ(world_.attached(), world_.local());
        EXPECT_EQ(damaged(check(world_.path())), std::set<std::string>{harmed});
        world_.objects().objects[harmed] = kept;
      }
    }
  }
}

TEST_P(SmallCopies, ALostSmallFileCostsNoVersion) {
  fill();
  const auto reader = world_.path() + "-reader";
  for (const auto& name : small_names()) {
    if (!is_in(name, "other")) continue;
    // A version stored below may replace the parts of labels, so that no head needs the object.
    const auto needed = small_names();
    if (std::ranges::find(needed, name) == needed.end()) continue;
    SCOPED_TRACE(name);
    const auto object = world_.objects().objects.at(name);
    harm(name, Loss::kRemoved);
    harm(name + ".copy", Loss::kChanged);
    must(attach(reader, AttachRole::kReads, false));
    {
      const auto repository =
          must(repo::RepositoryImpl::open(reader, world_.options(true), world_.hooks()));
      EXPECT_EQ(World::read_all_versions(*repository), world_.local());
    }
    EXPECT_EQ(damaged(check(reader)), (std::set<std::string>{name, name + ".copy"}));
    world_.objects().objects[name] = object;
    // The next head brings the file.
    ++seed_;
    world_.store("next" + std::to_string(seed_), tree_of(seed_));
    EXPECT_EQ(world_.attached(), world_.local());
    const auto repository =
        must(repo::RepositoryImpl::open(reader, world_.options(true), world_.hooks()));
    EXPECT_TRUE(must(repository->check({}, {})).damages.empty());
    world_.objects().objects[name + ".copy"] = object;
  }
}

TEST_P(SmallCopies, AnOlderHeadIsReadAndWrittenOnOnlyIfAccepted) {
  fill();
  const auto other = world_.path() + "-other";
  auto expected = world_.local();
  expected.erase("v3");
  const auto newest = newest_head(world_);
  const auto kept = world_.objects().objects;
  for (const auto& name :
       {"p/" + remote::head_name(newest.repository_id, 3), "p/" + newest.catalog.back().name}) {
    SCOPED_TRACE(name);
    harm(name, Loss::kChanged);
    harm(name + ".copy", Loss::kShortened);
    EXPECT_EQ(world_.attached(), expected);
    EXPECT_EQ(code_of(attach(other, AttachRole::kWrites, false)), ErrorCode::kCorrupt);
    must(attach(other, AttachRole::kWrites, true));
    const auto& created =
        world_.objects().objects.at("p/" + remote::head_name(newest.repository_id, 4));
    EXPECT_GT(must(remote::decode_head(base::as_text(created.bytes))).epoch, newest.epoch);
    must(store(other, "after"));
    expected["after"] = {{"file", "after"}};
    EXPECT_EQ(world_.attached(), expected);
    // The folder that knows the lost head uploads nothing more, and a repair changes nothing.
    EXPECT_FALSE(store(world_.path(), "late" + std::to_string(++seed_)));
    EXPECT_EQ(world_.attached(), expected);
    expected.erase("after");
    world_.objects().objects = kept;
  }
}

TEST_P(SmallCopies, AFolderThatKnowsTheLostHeadDoesNotGoBack) {
  fill();
  const auto reader = world_.path() + "-reader";
  must(attach(reader, AttachRole::kReads, false));
  const auto name = "p/" + remote::head_name(newest_head(world_).repository_id, 3);
  harm(name, Loss::kRemoved);
  const auto open = [&] {
    return repo::RepositoryImpl::open(reader, world_.options(true), world_.hooks());
  };
  EXPECT_EQ(World::read_all_versions(*must(open())), world_.local());
  harm(name + ".copy", Loss::kRemoved);
  EXPECT_EQ(code_of(open()), ErrorCode::kCorrupt);
}

// No list shows that the head existed: only its catalog objects do.
TEST_P(SmallCopies, AFreshReaderIsToldOfALostHead) {
  fill();
  const auto attach_and_listen = [&] {
    testing::internal::CaptureStderr();
    must(attach(world_.path() + "-reader", AttachRole::kReads, false));
    return testing::internal::GetCapturedStderr();
  };
  world_.clock().seconds += 2 * 3600;
  EXPECT_EQ(attach_and_listen(), "");
  const auto name = "p/" + remote::head_name(newest_head(world_).repository_id, 3);
  harm(name, Loss::kRemoved);
  harm(name + ".copy", Loss::kRemoved);
  EXPECT_NE(attach_and_listen().find("no head names"), std::string::npos);
  world_.clock().seconds -= 2 * 3600;  // A writer may be about to create the head.
  EXPECT_EQ(attach_and_listen(), "");
}

// An object under a number that no writer has created stops no reader.
TEST_P(SmallCopies, AForeignObjectUnderTheNextNumberStopsNoReader) {
  fill();
  const auto reader = world_.path() + "-reader";
  must(attach(reader, AttachRole::kReads, false));
  const auto name = "p/" + remote::head_name(newest_head(world_).repository_id, 4);
  world_.objects().objects[name].bytes.resize(100);
  EXPECT_EQ(world_.attached(), world_.local());
  {
    const auto repository =
        must(repo::RepositoryImpl::open(reader, world_.options(true), world_.hooks()));
    EXPECT_EQ(World::read_all_versions(*repository), world_.local());
  }
  EXPECT_EQ(code_of(store(world_.path(), "v4")), ErrorCode::kCorrupt);
}

TEST_P(SmallCopies, AStoreOfAnEarlierReleaseGetsCopiesWithItsNextHead) {
  fill();
  forget_copies();
  EXPECT_EQ(world_.attached(), world_.local());
  const auto before = check(world_.path());
  EXPECT_TRUE(before.damages.empty());
  EXPECT_EQ(before.notes.size(), 1U);
  std::string manifest;
  {
    const auto state = must(remote::find_state(*io::make_posix_file_system(), world_.path()));
    const auto map = must(state->objects());
    manifest = "p/" + map.at("series/00000001/manifests/00000001.man").front().object;
  }
  world_.store("v4", tree_of(4));
  for (const auto& name : small_names()) {
    EXPECT_TRUE(world_.objects().objects.contains(name + ".copy")) << name;
  }
  EXPECT_TRUE(check(world_.path()).damages.empty());
  // A damaged object gets no copy, and does not keep versions from the store.
  forget_copies();
  harm(manifest, Loss::kChanged);
  must(store(world_.path(), "v5"));
  EXPECT_FALSE(world_.objects().objects.contains(manifest + ".copy"));
  EXPECT_EQ(damaged(check(world_.path())), (std::set<std::string>{manifest, manifest + ".copy"}));
}

// After the failure of any request, the newest head's small objects and the head have copies.
TEST_P(SmallCopies, NoInterruptionLeavesAnObjectWithoutACopy) {
  for (const auto mishap :
       {Mishap::kBefore, Mishap::kLost, Mishap::kKilledBefore, Mishap::kKilledAfter}) {
    std::uint64_t requests = 1;
    for (std::uint64_t at = 0; at < requests; at += GetParam() ? 13 : 5) {
      World world(GetParam(), mishap, at);
      world.run([&] { return world.create(); });
      for (std::uint64_t i = 1; i < 4; ++i) world.store("v" + std::to_string(i), tree_of(i));
      requests = world.requests();
      const auto head = newest_head(world);
      const auto state = must(remote::find_state(*io::make_posix_file_system(), world.path()));
      auto names = remote::names_of(must(state->objects()));
      names.merge(remote::names_of(head));
      for (const auto& name : names) {
        EXPECT_TRUE(world.objects().objects.contains("p/" + name)) << name << world.where();
      }
      auto hooks = world.hooks();  // The check meets no failure.
      hooks.open = [&](const remote::BucketConfig&) {
        return Result<std::unique_ptr<bucket::Bucket>>(
            std::make_unique<MemoryBucket>(world.shared_objects(), "p/", &world.clock()));
      };
      const auto found = must(remote::check_objects(world.path(), world.options(true), hooks));
      EXPECT_TRUE(found.damages.empty()) << world.where();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plain, SmallCopies, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, SmallCopies, testing::Values(true));

}  // namespace
}  // namespace varve::test
