// SPDX-License-Identifier: Apache-2.0
#include "version/overlay_counters.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "base/coding.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::version {
namespace {

using varve::test::code_of;
using varve::test::must;

class OverlayCountersTest : public testing::Test {
 protected:
  OverlayCountersTest() {
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    env_.emplace(must(meta::Env::open(directory_.path(), options)));
  }
  void commit(const std::function<Result<void>(meta::WriteTxn&)>& change) {
    auto txn = must(meta::WriteTxn::begin(*env_));
    must(change(txn));
    must(txn.commit());
  }
  Result<void> load(OverlayCounters& counters) {
    const auto txn = must(meta::ReadTxn::begin(*env_));
    return counters.load(txn);
  }

  test::TempDirectory directory_;
  std::optional<meta::Env> env_;
};

TEST_F(OverlayCountersTest, NewVersionCountsFromTheRootOrFromItsBase) {
  OverlayCounters empty(std::nullopt);
  EXPECT_EQ(empty.next(), kRootIno + 1);
  EXPECT_EQ(empty.entries(), 0U);
  OverlayCounters clone(Ino{102});
  EXPECT_EQ(clone.entries(), 100U);
  EXPECT_EQ(clone.take_ino(), 102U);
  EXPECT_EQ(clone.take_ino(), 103U);
  EXPECT_EQ(clone.made(), 2U);
  clone.add_entries(-3);
  EXPECT_EQ(clone.entries(), 97U);
}

TEST_F(OverlayCountersTest, NumbersOfTheLastCheckpointAreLoaded) {
  OverlayNumbers numbers;
  numbers.next_ino = 50;
  numbers.entries = 7;
  numbers.changed_at = {1234, 0};
  numbers.rewrite_counts = {3, 9000, 1, 4000, 0, 0, 2};
  commit([&](meta::WriteTxn& txn) { return put_numbers(txn, numbers); });
  EXPECT_EQ(recorded_entries(*env_), 7U);
  OverlayCounters counters(std::nullopt);
  must(load(counters));
  EXPECT_EQ(counters.take_ino(), 50U);
  EXPECT_EQ(counters.entries(), 7U);
  EXPECT_EQ(counters.changed_at().seconds, 1234);
  EXPECT_EQ(counters.rewrite_counts(), numbers.rewrite_counts);
  EXPECT_EQ(counters.numbers().next_ino, 51U);
}

// Overlays of earlier releases have no number of names.
TEST_F(OverlayCountersTest, NamesWithoutANumberAreCounted) {
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    for (const std::string name : {"a", "b", "c"}) {
      VARVE_TRY(txn.put(meta::overlay::kDirents, meta::dirent_key(kRootIno, name),
                        base::be64(kRootIno + 1)));
    }
    return {};
  });
  EXPECT_EQ(recorded_entries(*env_), std::nullopt);
  OverlayCounters counters(std::nullopt);
  must(load(counters));
  EXPECT_EQ(counters.entries(), 3U);
}

TEST_F(OverlayCountersTest, OverlayOfAnotherFormatIsUnsupported) {
  commit(
      [&](meta::WriteTxn& txn) { return txn.put(meta::overlay::kState, "format", base::be64(2)); });
  OverlayCounters counters(std::nullopt);
  EXPECT_EQ(code_of(load(counters)), ErrorCode::kUnsupported);
}

TEST_F(OverlayCountersTest, CounterThatCouldGiveANumberTwiceIsCorrupt) {
  OverlayNumbers numbers;
  numbers.next_ino = 50;
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    VARVE_TRY(put_numbers(txn, numbers));
    return txn.put(meta::overlay::kInodes, meta::ino_key(50), "x");
  });
  OverlayCounters counters(std::nullopt);
  EXPECT_EQ(code_of(load(counters)), ErrorCode::kCorrupt) << "an inode has the next number";
  OverlayCounters clone(Ino{60});
  EXPECT_EQ(code_of(load(clone)), ErrorCode::kCorrupt) << "the base has the next number";
}

}  // namespace
}  // namespace varve::version
