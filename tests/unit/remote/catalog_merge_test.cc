// SPDX-License-Identifier: Apache-2.0
// Heads name few catalog objects, and a reader follows heads whose objects were merged.
#include "remote/catalog_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "remote/changes.h"
#include "stored_catalog.h"
#include "world.h"

namespace varve::test {
namespace {

remote::CatalogObject object_of(std::uint64_t number, std::uint64_t bytes) {
  return {"R/cat/" + std::to_string(number), bytes, remote::digest_of(std::to_string(number))};
}

TEST(CatalogMerge, AHeadNamesFewObjectsAndWritesAChangeFewTimes) {
  constexpr std::uint64_t kHeads = 1000;
  constexpr std::uint64_t kChange = 1000;
  remote::Head head;
  head.base_objects = 1;
  head.catalog.push_back(object_of(0, 5000));
  std::size_t most = 0;
  std::uint64_t written = 0;
  for (std::uint64_t number = 1; number <= kHeads; ++number) {
    const auto merged = remote::objects_to_merge(head, kChange);
    auto bytes = kChange;
    for (std::size_t i = 0; i < merged; ++i) {
      bytes += head.catalog.back().bytes;
      head.catalog.pop_back();
    }
    head.catalog.push_back(object_of(number, bytes));
    written += bytes;
    most = std::max(most, head.catalog.size());
  }
  EXPECT_LE(most, 13U);
  EXPECT_LE(written, 4 * kHeads * kChange);
}

TEST(CatalogMerge, LongObjectsAndTheBaseStay) {
  remote::Head head;
  head.base_objects = 3;
  for (std::uint64_t i = 0; i < 3; ++i) head.catalog.push_back(object_of(i, 100));
  EXPECT_EQ(remote::objects_to_merge(head, 1'000'000), 0U);
  for (std::uint64_t i = 3; i < 40; ++i) head.catalog.push_back(object_of(i, 9'000'000));
  EXPECT_EQ(remote::objects_to_merge(head, 1'000'000), 0U);
  for (std::uint64_t i = 40; i < 60; ++i) head.catalog.push_back(object_of(i, 100));
  EXPECT_EQ(remote::objects_to_merge(head, 1'000'000), 20U);
}

TEST(CatalogMerge, TheLastChangeOfAKeyStaysAndSoDoesARemoval) {
  const auto part = [](const std::vector<remote::Change>& changes) {
    remote::ChangeWriter writer;
    for (const auto& change : changes) writer.add(change);
    return writer.finish().front();
  };
  const auto merged = must(
      remote::merge_parts({part({{1, "a", "1"}, {1, "b", "1"}, {255, "a", "1"}}),
                           part({{1, "b", std::nullopt}, {2, "a", "2"}}), part({{1, "a", "3"}})}));
  std::map<std::pair<int, std::string>, std::string> found;
  for (const auto& one : merged) {
    must(remote::for_each_change(one, [&](const remote::Change& change) -> Result<void> {
      found[{change.table, std::string(change.key)}] = change.value.value_or("removed");
      return {};
    }));
  }
  const std::map<std::pair<int, std::string>, std::string> expected = {
      {{1, "a"}, "3"}, {{1, "b"}, "removed"}, {{2, "a"}, "2"}, {{255, "a"}, "1"}};
  EXPECT_EQ(found, expected);
}

class MergedCatalog : public testing::TestWithParam<bool> {
 protected:
  MergedCatalog() {
    world_.hooks().delta_bytes_min = std::uint64_t{4} << 20;  // No new base.
    must(world_.create());
  }
  Result<std::unique_ptr<Repository>> open(const std::string& folder) {
    return repo::RepositoryImpl::open(folder, world_.options(true), world_.hooks());
  }
  void attach(const std::string& folder) {
    must(repo::attach_to_store({.place = "s3://memory/p"}, folder, world_.options(true),
                               world_.hooks()));
  }
  static Tree tree(std::uint64_t number) {
    return {{"a", noise(300, number)}, {"b", noise(300, number / 4)}};
  }
  World world_{GetParam(), Mishap::kBefore, UINT64_MAX};
};

// Readers that follow every head, every third one, and all at once see what a fresh folder sees.
TEST_P(MergedCatalog, AReaderFollowsAtAnyDistance) {
  const std::vector<int> steps = {1, 3, 50};
  std::size_t most = 0;
  for (int version = 1; version <= 50; ++version) {
    world_.store("v" + std::to_string(version), tree(static_cast<std::uint64_t>(version)));
    if (version % 7 == 0) world_.erase({"v" + std::to_string(version - 2)});
    if (version % 10 == 0) world_.arrange();
    most = std::max(most, newest_head(world_).catalog.size());
    for (const int step : steps) {
      const auto folder = world_.path() + "-reader" + std::to_string(step);
      if (version == 1) attach(folder);
      if (version % step != 0) continue;
      EXPECT_EQ(World::read_all_versions(*must(open(folder))), world_.local()) << version;
      std::uint64_t commit = 0;
      std::uint64_t here = 0;
      EXPECT_TRUE(records_here(folder, commit) == records_here(world_.path(), here)) << version;
    }
  }
  EXPECT_EQ(newest_head(world_).base_objects, 1U);
  EXPECT_LE(most, 13U);
  EXPECT_EQ(world_.attached(), world_.local());
}

INSTANTIATE_TEST_SUITE_P(Plain, MergedCatalog, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, MergedCatalog, testing::Values(true));

}  // namespace
}  // namespace varve::test
