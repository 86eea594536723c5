// SPDX-License-Identifier: Apache-2.0
#include "catalog/name_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "catalog/series_catalog.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::catalog {
namespace {

using test::must;

constexpr SeriesId kNameSeries{3};

// The parameter says whether the catalog is encrypted.
class NameTable : public testing::TestWithParam<bool> {
 protected:
  NameTable() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.map_bytes = std::size_t{16} << 20;
    if (GetParam()) options.keys.ring = test::test_keys();
    env_.emplace(must(meta::Env::open(directory_.path(), options)));
    env_->count_reads(reads_);
  }

  static VersionRecord record(std::uint32_t number, const std::string& name) {
    VersionRecord made;
    made.series = kNameSeries;
    made.number = static_cast<VersionNumber>(number);
    made.name = name;
    made.state = VersionState::kSealed;
    made.root.mode = S_IFDIR | 0755;
    return made;
  }
  template <typename Call>
  void commit(const Call& call) {
    auto txn = must(meta::WriteTxn::begin(*env_));
    must(call(txn));
    must(txn.commit());
  }
  void put(std::uint32_t number, const std::string& name) {
    commit([&](meta::WriteTxn& txn) { return put_version(txn, record(number, name)); });
  }
  // Returns the number of the version with the name; 0 if there is none.
  std::uint32_t find(const std::string& name) {
    const auto txn = must(meta::ReadTxn::begin(*env_));
    const auto found = must(find_version_named(txn, kNameSeries, name));
    return found ? static_cast<std::uint32_t>(found->number) : 0;
  }
  bool complete() { return must(has_all_names(must(meta::ReadTxn::begin(*env_)))); }

  const test::TempDirectory directory_;
  base::Counter reads_;
  std::optional<meta::Env> env_;
};

TEST_P(NameTable, LookupsReadAFewRecordsOfMany) {
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    for (std::uint32_t i = 1; i <= 1000; ++i) {
      VARVE_TRY(put_version(txn, record(i, "v" + std::to_string(i))));
    }
    return {};
  });
  const auto before = reads_.value();
  EXPECT_EQ(find("v700"), 700U);
  EXPECT_EQ(find("w"), 0U);
  EXPECT_LE(reads_.value() - before, 6U);
}

TEST_P(NameTable, RandomChangesAgreeWithAMap) {
  std::mt19937 random(11);
  std::map<std::uint32_t, std::string> versions;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto number = static_cast<std::uint32_t>(1 + random() % 30);
    if (random() % 4 == 0) {
      versions.erase(number);
      commit([&](meta::WriteTxn& txn) {
        return erase_version(txn, kNameSeries, static_cast<VersionNumber>(number));
      });
    } else {
      const auto name = "n" + std::to_string(random() % 60);
      const bool taken = std::any_of(versions.begin(), versions.end(),
                                     [&](const auto& other) { return other.second == name; });
      if (taken) continue;
      versions[number] = name;
      put(number, name);
    }
    ASSERT_TRUE(complete());
    for (int i = 0; i < 60; ++i) {
      const auto name = "n" + std::to_string(i);
      const auto holder = std::find_if(versions.begin(), versions.end(),
                                       [&](const auto& other) { return other.second == name; });
      ASSERT_EQ(find(name), holder == versions.end() ? 0 : holder->first) << name;
    }
    if (random() % 10 == 0) commit([&](meta::WriteTxn& txn) { return rebuild_names(txn); });
  }
}

TEST_P(NameTable, AVersionThatIsShownUnderAnotherNameIsFoundByIt) {
  put(1, "same");
  put(2, "same");
  put(3, "latest");  // No version may have this name.
  EXPECT_TRUE(complete());
  EXPECT_EQ(find("same"), 1U);
  EXPECT_EQ(find("invalid-name-2"), 2U);
  EXPECT_EQ(find("invalid-name-3"), 3U);
  EXPECT_EQ(find("latest"), 0U);
  put(1, "other");
  EXPECT_EQ(find("same"), 2U);
  EXPECT_EQ(find("other"), 1U);
}

TEST_P(NameTable, ACatalogWithoutNamesIsReadAndCompleted) {
  put(1, "a");
  commit([&](meta::WriteTxn& txn) {
    return put_series(txn, {kNameSeries, "s", {}, 2, Placement::kLineage, Rewrite::kNone, ""});
  });
  commit([&](meta::WriteTxn& txn) { return txn.clear(meta::catalog::kNames); });
  EXPECT_FALSE(complete());
  EXPECT_EQ(find("a"), 1U);
  EXPECT_EQ(find("b"), 0U);
  put(2, "b");
  EXPECT_EQ(find("b"), 2U);
  commit([&](meta::WriteTxn& txn) { return rebuild_names(txn); });
  EXPECT_TRUE(complete());
  EXPECT_EQ(find("a"), 1U);
  const auto txn = must(meta::ReadTxn::begin(*env_));
  EXPECT_EQ(must(find_series_named(txn, "s"))->id, kNameSeries);
  EXPECT_FALSE(must(find_series_named(txn, "t")));
}

// An earlier release opened the catalog, and renamed a version without the table.
TEST_P(NameTable, AStaleEntryIsNotBelieved) {
  put(1, "old");
  std::string renamed;
  {
    auto txn = must(meta::WriteTxn::begin(*env_));
    must(put_version(txn, record(2, "new")));
    renamed =
        *must(txn.get(meta::catalog::kVersions, meta::version_key(kNameSeries, VersionNumber{2})));
  }
  commit([&](meta::WriteTxn& txn) {
    return txn.put(meta::catalog::kVersions, meta::version_key(kNameSeries, VersionNumber{1}),
                   renamed);
  });
  EXPECT_EQ(find("old"), 0U);
}

TEST_P(NameTable, TheNewestSealedVersionIsFoundFromTheEnd) {
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    for (std::uint32_t i = 1; i <= 500; ++i) {
      auto made = record(i, "v" + std::to_string(i));
      if (i == 500) made.state = VersionState::kOpen;
      VARVE_TRY(put_version(txn, made));
    }
    auto other = record(1, "x");
    other.series = SeriesId{4};
    return put_version(txn, other);
  });
  const auto before = reads_.value();
  const auto txn = must(meta::ReadTxn::begin(*env_));
  EXPECT_EQ(must(newest_sealed_version(txn, kNameSeries))->number, VersionNumber{499});
  EXPECT_LE(reads_.value() - before, 4U);
  EXPECT_FALSE(must(newest_sealed_version(txn, SeriesId{2})));
  EXPECT_FALSE(must(newest_sealed_version(txn, SeriesId{5})));
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, NameTable, testing::Bool());

}  // namespace
}  // namespace varve::catalog
