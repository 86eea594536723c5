// SPDX-License-Identifier: Apache-2.0
// Tests the order of names in overlays. The parameter says whether the overlay is encrypted.
#include "version/overlay_names.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::version {
namespace {

using varve::test::code_of;
using varve::test::must;

class OverlayNames : public testing::TestWithParam<bool> {
 protected:
  OverlayNames() {
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    if (GetParam()) {
      options.keys = meta::overlay_keys(test::test_keys(), SeriesId{1}, VersionNumber{1});
    }
    env_.emplace(must(meta::Env::open(directory_.path(), options)));
  }
  void put(Ino directory, const std::map<std::string, Ino>& names) {
    auto txn = must(meta::WriteTxn::begin(*env_));
    for (const auto& [name, ino] : names) {
      must(txn.put(meta::overlay::kDirents, name_key(*env_, directory, name),
                   encode_name(*env_, name, ino)));
    }
    must(txn.commit());
  }
  // Reads all names > `after` in batches. Returns how many batches that took.
  int read_all(Ino directory, const std::string& after, const NameLimits& limits,
               std::vector<std::pair<std::string, Ino>>& out) {
    const auto txn = must(meta::ReadTxn::begin(*env_));
    std::string last = after;
    for (int batches = 1;; ++batches) {
      const auto batch = must(read_names(txn, directory, last, limits));
      for (const auto& name : batch.names) out.emplace_back(name.name, name.ino);
      if (!batch.more) return batches;
      EXPECT_FALSE(batch.names.empty());
      if (GetParam()) {
        EXPECT_LE(batch.bytes, std::max(limits.bytes, std::size_t{400}));
      }
      last = out.back().first;
    }
  }

  test::TempDirectory directory_;
  std::optional<meta::Env> env_;
};

TEST_P(OverlayNames, BatchesAreInByteOrderWhateverTheirBounds) {
  std::mt19937_64 random(1);
  std::map<std::string, Ino> names;
  while (names.size() < 700) {
    std::string name = "n";
    for (auto n = random() % 20; n != 0; --n) name += static_cast<char>(1 + random() % 46);
    names[name] = random() % 5 == 0 ? 0 : 1 + random() % 1000;
  }
  put(9, names);
  put(8, {{"before", 3}});
  put(10, {{"after", 4}});
  const std::vector<std::pair<std::string, Ino>> all(names.begin(), names.end());
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{3000}, std::size_t{1} << 20}) {
    std::vector<std::pair<std::string, Ino>> read;
    const int batches = read_all(9, "", {10, bytes}, read);
    EXPECT_EQ(read, all) << bytes;
    if (GetParam()) {
      EXPECT_EQ(batches == 1, bytes > 3000) << bytes;
    }
    for (const std::size_t from : {std::size_t{0}, std::size_t{350}, all.size() - 1}) {
      read.clear();
      read_all(9, all[from].first, {10, bytes}, read);
      EXPECT_TRUE(std::equal(read.begin(), read.end(),
                             all.begin() + static_cast<std::ptrdiff_t>(from) + 1, all.end()));
    }
    read.clear();
    read_all(9, "no such name", {10, bytes}, read);
    EXPECT_EQ(read.size(), static_cast<std::size_t>(
                               std::distance(names.upper_bound("no such name"), names.end())));
  }
}

TEST_P(OverlayNames, NameIsFoundInItsDirectoryOnly) {
  put(9, {{"name", 5}, {"removed", 0}});
  const auto txn = must(meta::ReadTxn::begin(*env_));
  EXPECT_EQ(must(find_name(txn, 9, "name")), std::optional<Ino>(5));
  EXPECT_EQ(must(find_name(txn, 9, "removed")), std::optional<Ino>(0));
  EXPECT_EQ(must(find_name(txn, 9, "nam")), std::nullopt);
  EXPECT_EQ(must(find_name(txn, 8, "name")), std::nullopt);
}

TEST_P(OverlayNames, KeptBatchIsNotUsedAfterAChange) {
  NameBatches batches;
  put(9, {{"a", 1}, {"c", 3}, {"d", 4}});
  const auto names_after = [&](const std::string& after) {
    const auto txn = must(meta::ReadTxn::begin(*env_));
    std::string found;
    const auto batch = must(batches.read(txn, 9, after));
    for (const auto& name : batch->names) {
      if (name.name > after) found += name.name;
    }
    return found;
  };
  EXPECT_EQ(names_after(""), "acd");
  EXPECT_EQ(names_after("a"), "cd");
  put(9, {{"b", 2}});
  EXPECT_EQ(names_after("a"), "bcd");
  EXPECT_EQ(names_after(""), "abcd");
  EXPECT_EQ(names_after("d"), "");
}

TEST_P(OverlayNames, BadRecordIsCorrupt) {
  put(9, {{"good", 1}});
  {
    auto txn = must(meta::WriteTxn::begin(*env_));
    must(txn.put(meta::overlay::kDirents, name_key(*env_, 9, "bad"), "short"));
    must(txn.commit());
  }
  const auto txn = must(meta::ReadTxn::begin(*env_));
  EXPECT_EQ(code_of(find_name(txn, 9, "bad")), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(read_names(txn, 9, "", {10, 1000})), ErrorCode::kCorrupt);
  EXPECT_EQ(must(find_name(txn, 9, "good")), std::optional<Ino>(1));
}

TEST_P(OverlayNames, TwoRecordsOfOneNameAreCorrupt) {
  if (!GetParam()) GTEST_SKIP() << "a plain overlay has the name in the key";
  put(9, {{"a", 3}, {"b", 4}, {"c", 5}});
  auto txn = must(meta::WriteTxn::begin(*env_));
  must(txn.put(meta::overlay::kDirents, name_key(*env_, 9, "b"), encode_name(*env_, "a", 4)));
  must(txn.commit());
  const auto reading = must(meta::ReadTxn::begin(*env_));
  EXPECT_EQ(code_of(read_names(reading, 9, "", {10, 3000})), ErrorCode::kCorrupt);
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, OverlayNames, testing::Bool());

}  // namespace
}  // namespace varve::version
