// SPDX-License-Identifier: Apache-2.0
// The difference of two snapshots, compared with that of all their records.
#include "meta/tree_changes.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "base/coding.h"
#include "meta/stored_records.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr std::array<const char*, 3> kTables = {"a", "b", "c"};
// One more than the environment has.
constexpr std::array<const char*, 4> kNames = {"a", "b", "c", "missing"};

using Records = std::map<std::pair<std::size_t, std::string>, std::string>;
using Keys = std::set<std::pair<std::size_t, std::string>>;

Records all_of(const ReadTxn& txn) {
  Records records;
  for (std::size_t table = 0; table < kTables.size(); ++table) {
    auto cursor = must(StoredCursor::open(txn, kTables[table]));
    for (auto one = must(cursor.next()); one; one = must(cursor.next())) {
      records[{table, std::string(one->key)}] = one->value;
    }
  }
  return records;
}

Keys difference(const Records& was, const Records& is) {
  Keys keys;
  for (const auto& [key, value] : was) {
    const auto now = is.find(key);
    if (now == is.end() || now->second != value) keys.insert(key);
  }
  for (const auto& [key, value] : is) {
    if (!was.contains(key)) keys.insert(key);
  }
  return keys;
}

struct Found {
  Keys keys;
  TreeWork work;
};
Found changed(const ReadTxn& before, const ReadTxn& after) {
  Found found;
  std::optional<std::pair<std::size_t, std::string>> last;
  found.work = must(
      for_each_changed_key(before, after, kNames, [&](std::size_t table, std::string_view key) {
        const std::pair one(table, std::string(key));
        EXPECT_TRUE(!last || *last < one);
        last = one;
        found.keys.insert(one);
        return Result<void>();
      }));
  return found;
}

// The parameter says whether the environment is encrypted.
class TreeChanges : public testing::TestWithParam<bool> {
 protected:
  Env open() {
    EnvOptions options;
    options.tables = kTables;
    if (GetParam()) options.keys.ring = varve::test::test_keys();
    return must(Env::open(directory_.path(), options));
  }
  varve::test::TempDirectory directory_;
};

std::string key_of(std::uint64_t number) { return base::be64(number * 0x9E3779B97F4A7C15U); }

// Keys of all lengths, values of all lengths, and values that take pages of their own.
void change(WriteTxn& txn, std::mt19937_64& random) {
  const auto table = random() % kTables.size();
  auto key = key_of(random() % 3000);
  if (random() % 4 == 0) key += std::string(random() % 300, 'k');
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      must(txn.erase(table, key));
      break;
    case 3:
      must(txn.put(table, key, test::noise(random() % 9000, random())));
      break;
    case 4:
      if (random() % 200 == 0) must(txn.clear(table));
      if (random() % 100 == 0) must(txn.erase_prefix(table, key.substr(0, 1)));
      break;
    default:
      must(txn.put(table, key, test::noise(random() % 200, random())));
  }
}

TEST_P(TreeChanges, AreThoseOfAllRecords) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    const varve::test::TempDirectory folder;
    EnvOptions options;
    options.tables = kTables;
    if (GetParam()) options.keys.ring = varve::test::test_keys();
    const auto env = must(Env::open(folder.path(), options));
    std::optional<ReadTxn> before;
    before.emplace(must(ReadTxn::begin(env)));
    auto was = all_of(*before);
    for (int round = 0; round < 40; ++round) {
      // Many commits between two snapshots: their free pages are used again, those of the first
      // snapshot are not.
      for (auto commits = random() % 5; commits > 0; --commits) {
        auto txn = must(WriteTxn::begin(env));
        for (auto changes = random() % (seed % 3 == 0 ? 400 : 12); changes > 0; --changes) {
          change(txn, random);
        }
        must(txn.commit());
      }
      auto after = must(ReadTxn::begin(env));
      auto is = all_of(after);
      const auto found = changed(*before, after);
      ASSERT_TRUE(found.keys == difference(was, is)) << "seed " << seed << ", round " << round;
      if (random() % 3 == 0) continue;  // The snapshot stays for several rounds.
      before.reset();
      before.emplace(std::move(after));
      was = std::move(is);
    }
  }
}

TEST_P(TreeChanges, CostWhatChanged) {
  const auto env = open();
  std::uint64_t costs[2] = {};
  std::uint64_t records = 0;
  for (auto& cost : costs) {
    for (const auto until = records + (records == 0 ? 10'000 : 70'000); records < until;) {
      auto txn = must(WriteTxn::begin(env));
      for (int i = 0; i < 5000; ++i) must(txn.put(0, key_of(records++), "a value of a record"));
      must(txn.commit());
    }
    const auto before = must(ReadTxn::begin(env));
    for (std::uint64_t i = 0; i < 10; ++i) {
      auto txn = must(WriteTxn::begin(env));
      must(txn.put(0, key_of(i * 700), std::to_string(records)));
      must(txn.put(1, key_of(records + i), "a new record"));
      must(txn.commit());
    }
    const auto after = must(ReadTxn::begin(env));
    const auto found = changed(before, after);
    EXPECT_EQ(found.keys.size(), 20U);
    cost = found.work.pages;
  }
  // Ten leaves of each snapshot, and the pages above them, of trees that are one level higher now.
  EXPECT_LE(costs[1], costs[0] + 30);
  EXPECT_LE(costs[1], 80U);
}

TEST_P(TreeChanges, EqualSnapshotsReadNothing) {
  const auto env = open();
  const auto before = must(ReadTxn::begin(env));
  const auto after = must(ReadTxn::begin(env));
  EXPECT_EQ(changed(before, after).work.pages, 0U);
}

TEST_P(TreeChanges, WrongOrderReturnsInvalid) {
  const auto env = open();
  const auto before = must(ReadTxn::begin(env));
  auto txn = must(WriteTxn::begin(env));
  must(txn.put(0, "key", "value"));
  must(txn.commit());
  const auto after = must(ReadTxn::begin(env));
  const auto none = [](std::size_t, std::string_view) { return Result<void>(); };
  EXPECT_EQ(code_of(for_each_changed_key(after, before, kNames, none)), ErrorCode::kInvalid);
}

INSTANTIATE_TEST_SUITE_P(Plain, TreeChanges, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, TreeChanges, testing::Values(true));

}  // namespace
}  // namespace varve::meta
