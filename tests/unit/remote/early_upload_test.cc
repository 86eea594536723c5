// SPDX-License-Identifier: Apache-2.0
// Segments of open versions that are uploaded before the seal: the head that follows names them,
// and whatever the store or the process does meanwhile, no version is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "campaign.h"
#include "stepped_history.h"
#include "world.h"

namespace varve::test {
namespace {

constexpr std::int64_t kSecondsOfADay = 24 * 3600;

void use_long_segments(World& world) {
  world.hooks().extent_bytes_max = std::uint64_t{64} << 20;
  world.hooks().delta_bytes_min = std::uint64_t{4} << 20;
}

// Returns a tree of two segments.
Tree long_tree(std::uint64_t seed) {
  return {{"a", noise(9'000'000, seed)}, {"b", noise(3'000'000, seed + 1)}};
}

std::unique_ptr<World> early_world(bool is_encrypted, Mishap mishap, std::uint64_t at) {
  auto world = std::make_unique<World>(is_encrypted, mishap, at);
  use_long_segments(*world);
  world->before_seal = [](VersionWriter& writer) { must(writer.sync()); };
  return world;
}

std::vector<SteppedHistory::Step> early_steps() {
  return {
      [](World& world) { world.run([&] { return world.create(); }); },
      [](World& world) { world.store("v1", long_tree(10)); },
      [](World& world) {
        world.store("v2", long_tree(20));
        world.expect_versions();
        world.expect_chain();
      },
  };
}

// Opens a version, and syncs it once its first segment is complete.
std::shared_ptr<VersionWriter> open_long(Repository& repository, const std::string& name) {
  auto series = repository.find_series("s");
  if (!series) series = repository.create_series("s");
  const auto id = must(std::move(series)).id;
  static_cast<void>(must(repository.open_version(id, name, folder())));
  auto writer = must(repository.writer(id));
  for (const auto& [file, bytes] : long_tree(30)) write_file(*writer, kRootIno, file, bytes);
  must(writer->sync());
  return writer;
}

// The parameter says whether the repository is encrypted.
class EarlyUpload : public testing::TestWithParam<bool> {};

TEST_P(EarlyUpload, IsNamedByTheHeadAfterTheSeal) {
  World world(GetParam(), Mishap::kNone, 0);
  use_long_segments(world);
  must(world.create());
  std::set<std::string> early;
  world.before_seal = [&](VersionWriter& writer) {
    must(writer.sync());
    early = world.names_with("/seg/");
    EXPECT_TRUE(world.heads().empty());
  };
  world.store("v1", long_tree(10));
  EXPECT_EQ(early.size(), 1U);
  const auto all = world.names_with("/seg/");
  EXPECT_EQ(all.size(), 2U);
  EXPECT_TRUE(std::ranges::includes(all, early));
  world.expect_versions();
}

TEST_P(EarlyUpload, IsOff) {
  World world(GetParam(), Mishap::kNone, 0);
  use_long_segments(world);
  world.hooks().early_bytes = 0;
  must(world.create());
  world.before_seal = [&](VersionWriter& writer) {
    must(writer.sync());
    EXPECT_TRUE(world.names_with("/seg/").empty());
  };
  world.store("v1", long_tree(10));
  world.expect_versions();
}

// The process ends without a seal; the next one names what this one has uploaded.
TEST_P(EarlyUpload, OutlivesItsProcess) {
  World world(GetParam(), Mishap::kNone, 0);
  use_long_segments(world);
  must(world.create());
  std::set<std::string> early;
  {
    const auto repository =
        must(repo::RepositoryImpl::open(world.path(), world.options(), world.hooks()));
    const auto writer = open_long(*repository, "v1");
    early = world.names_with("/seg/");
    EXPECT_EQ(early.size(), 1U);
  }
  must(world.with([&](Repository& repository) {
    const auto id = must(repository.find_series("s")).id;
    must(repository.seal(id, must(repository.find_version(id, "v1")).number, ""));
  }));
  EXPECT_EQ(world.names_with("/seg/").size(), 2U);
  EXPECT_TRUE(std::ranges::includes(world.names_with("/seg/"), early));
  EXPECT_TRUE(world.attached().at("v1") == long_tree(30));
}

// Removes what a dropped version had uploaded, a day after the next head.
TEST_P(EarlyUpload, OfADroppedVersionIsGarbage) {
  World world(GetParam(), Mishap::kNone, 0);
  use_long_segments(world);
  must(world.create());
  std::set<std::string> early;
  must(world.with([&](Repository& repository) {
    const auto number = open_long(repository, "v1")->info().number;
    early = world.names_with("/seg/");
    must(repository.abandon_version(must(repository.find_series("s")).id, number, true));
  }));
  EXPECT_EQ(early.size(), 1U);
  world.store("v2", tree_of(1));
  EXPECT_TRUE(std::ranges::includes(world.names_with("/seg/"), early));
  world.clock().seconds += 2 * kSecondsOfADay;
  world.store("v3", tree_of(2));
  const auto left = world.names_with("/seg/");
  EXPECT_TRUE(std::ranges::none_of(early, [&](const auto& name) { return left.contains(name); }));
  world.expect_versions();
}

// Damage that is found before the seal is told after it.
TEST_P(EarlyUpload, TellsOfDamage) {
  World world(GetParam(), Mishap::kBefore, UINT64_MAX);
  use_long_segments(world);
  must(world.create());
  const auto open = world.hooks().open;
  bool fails = true;
  world.hooks().open =
      [&](const remote::BucketConfig& config) -> Result<std::unique_ptr<bucket::Bucket>> {
    if (fails) return Error(ErrorCode::kUnavailable, "not now");
    return open(config);
  };
  const auto closed = world.with([&](Repository& repository) {
    const auto writer = open_long(repository, "v1");
    EXPECT_TRUE(world.names_with("/seg/").empty());
    for (const auto& entry : std::filesystem::recursive_directory_iterator(world.path())) {
      if (entry.path().extension() != ".seg" || entry.file_size() < 6'000'000) continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(5'000'000);
      file.write("damage", 6);
    }
    fails = false;
    write_file(*writer, kRootIno, "c", noise(100'000, 1));
    must(writer->sync());
    EXPECT_EQ(world.names_with("/seg/").size(), 1U);
    const auto id = must(repository.find_series("s")).id;
    const auto number = writer->info().number;
    must(repository.seal(id, number, ""));
  });
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code(), ErrorCode::kCorrupt) << closed.error().message();
}

std::uint64_t early_stride() {
  const char* const wanted = std::getenv("VARVE_TEST_REQUESTS");
  return wanted == nullptr ? 29 : std::max<std::uint64_t>(std::strtoull(wanted, nullptr, 10), 1);
}

// VARVE_TEST_REQUESTS=N tries every Nth request, VARVE_TEST_FROM=N others.
TEST_P(EarlyUpload, NoRequestLosesAVersion) {
  SteppedHistory history(
      [](Mishap mishap, std::uint64_t at) { return early_world(GetParam(), mishap, at); },
      early_steps());
  const auto requests = history.whole().requests();
  std::uint64_t first = from_request();
  std::uint64_t tried = 0;
  for (const auto mishap : {Mishap::kBefore, Mishap::kLost, Mishap::kLater, Mishap::kHangs,
                            Mishap::kKilledBefore, Mishap::kKilledAfter}) {
    for (auto at = first++ % early_stride(); at < requests; at += early_stride()) {
      static_cast<void>(history.play(mishap, at));
      if (HasFailure()) return;
      ++tried;
    }
  }
  tell_tried(tried, requests);
}

INSTANTIATE_TEST_SUITE_P(Plain, EarlyUpload, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, EarlyUpload, testing::Values(true));

}  // namespace
}  // namespace varve::test
