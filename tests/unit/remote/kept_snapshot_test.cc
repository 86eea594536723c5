// SPDX-License-Identifier: Apache-2.0
#include "remote/kept_snapshot.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "support/prefer_memory.h"
#include "support/temp_repository.h"

namespace varve::remote {
namespace {

using test::must;

constexpr std::array<const char*, 1> kTables = {"table"};

class KeptSnapshotTest : public testing::Test {
 protected:
  static meta::EnvOptions options() {
    meta::EnvOptions made;
    made.tables = kTables;
    return made;
  }
  void write(std::size_t bytes) {
    kept_.before_write(env_);
    auto txn = must(meta::WriteTxn::begin(env_));
    must(txn.put(0, "key", std::string(bytes, 'v')));
    must(txn.commit());
  }
  meta::ReadTxn now() { return must(meta::ReadTxn::begin(env_)); }

  test::PreferMemory in_memory_;
  test::TempDirectory directory_;
  meta::Env env_ = must(meta::Env::open(directory_.path(), options()));
  KeptSnapshot kept_;
};

TEST_F(KeptSnapshotTest, StaysWhileTheCatalogChanges) {
  const auto commit = now().id();
  kept_.begin(env_);
  for (int i = 0; i < 10; ++i) write(100);
  const auto taken = kept_.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->id(), commit);
  EXPECT_FALSE(kept_.take());
}

// Pages of an open snapshot are not used again, so the file would grow without bound.
TEST_F(KeptSnapshotTest, EndsWhenTheCatalogHasGrownTooMuch) {
  kept_.begin(env_);
  constexpr std::size_t kValue = std::size_t{4} << 20;
  for (std::size_t bytes = 0; bytes < KeptSnapshot::kGrowthMin; bytes += kValue) write(kValue);
  write(100);
  EXPECT_FALSE(kept_.take());
  const auto used = meta::used_bytes(env_).bytes;
  for (int i = 0; i < 20; ++i) write(kValue);
  EXPECT_LT(meta::used_bytes(env_).bytes, used + 4 * kValue);
}

TEST_F(KeptSnapshotTest, TheNextOneTakesItsPlaceOnlyWhenItsHeadExists) {
  kept_.begin(env_);
  const auto commit = now().id();
  write(100);
  auto last = kept_.take();
  kept_.put_back(std::move(last), now());
  {
    auto taken = kept_.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->id(), commit);
    kept_.put_back(std::move(taken), now());
  }
  kept_.advance();
  const auto taken = kept_.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->id(), commit + 1);
}

TEST_F(KeptSnapshotTest, NothingIsKeptAfterTheEnd) {
  kept_.begin(env_);
  kept_.close();
  EXPECT_FALSE(kept_.take());
  kept_.begin(env_);
  kept_.put_back(now(), now());
  kept_.advance();
  EXPECT_FALSE(kept_.take());
}

}  // namespace
}  // namespace varve::remote
