// SPDX-License-Identifier: Apache-2.0
// Histories of a repository in an object store. At every request of such a history, the store
// fails, loses its answer or answers late, or the process is killed. In all cases, each version
// whose replication was acknowledged is in the store, with its bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "campaign.h"
#include "stepped_history.h"
#include "world.h"

namespace varve::test {
namespace {

std::vector<SteppedHistory::Step> steps() {
  return {
      [](World& world) { world.run([&] { return world.create(); }); },
      [](World& world) { world.store("v1", tree_of(10)); },
      [](World& world) { world.store("v2", tree_of(11)); },
      [](World& world) { world.store("v3", tree_of(12)); },
      [](World& world) { world.arrange(); },
      [](World& world) { world.erase({"v1"}); },
      [](World& world) { world.rename("v2", "second"); },
      [](World& world) { world.store("v4", tree_of(14)); },
      [](World& world) { world.arrange(); },
      [](World& world) {
        world.erase({"second", "v3"});
      },
      [](World& world) {
        world.clock().seconds += 2 * 24 * 3600;
        world.store("v5", tree_of(15));
        world.expect_versions();
        world.expect_chain();
      },
  };
}

void play(World& world) {
  for (const auto& step : steps()) step(world);
}

std::uint64_t stride() {
  const char* const wanted = std::getenv("VARVE_TEST_REQUESTS");
  return wanted == nullptr ? 29 : std::max<std::uint64_t>(std::strtoull(wanted, nullptr, 10), 1);
}

class ReplicaHistory : public testing::TestWithParam<bool> {};

TEST_P(ReplicaHistory, WithoutMishapAllIsReplicated) {
  World world(GetParam(), Mishap::kNone, 0);
  play(world);
  EXPECT_GT(world.requests(), 50U);
  // A fresh machine reads exactly the versions that are left.
  EXPECT_EQ(world.attached().size(), 2U);
}

TEST(ReplicaPool, IsReplicatedToo) {
  World world(false, Mishap::kNone, 0, Placement::kLineagePool);
  play(world);
}

// VARVE_TEST_REQUESTS=N tries every Nth request, VARVE_TEST_FROM=N others.
TEST_P(ReplicaHistory, NoRequestLosesAVersion) {
  SteppedHistory history(
      [](Mishap mishap, std::uint64_t at) {
        return std::make_unique<World>(GetParam(), mishap, at);
      },
      steps());
  const auto requests = history.whole().requests();
  std::uint64_t first = from_request();
  std::uint64_t tried = 0;
  for (const auto mishap : {Mishap::kBefore, Mishap::kLost, Mishap::kLater, Mishap::kHangs,
                            Mishap::kKilledBefore, Mishap::kKilledAfter}) {
    for (auto at = first++ % stride(); at < requests; at += stride()) {
      static_cast<void>(history.play(mishap, at));
      if (HasFailure()) return;
      ++tried;
    }
  }
  tell_tried(tried, requests);
}

INSTANTIATE_TEST_SUITE_P(Plain, ReplicaHistory, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ReplicaHistory, testing::Values(true));

}  // namespace
}  // namespace varve::test
