// SPDX-License-Identifier: Apache-2.0
#include "maintain/label_facts.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "catalog/clock_record.h"
#include "catalog/pool_records.h"
#include "catalog/sequence_record.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::maintain {
namespace {

using catalog::SeriesSequences;
using format::ManifestRecord;
using varve::test::must;

constexpr SeriesId kFirst{1};
constexpr SeriesId kSecond{2};
const std::string kFirstId(kCatalogIdBytes, 'a');
const std::string kSecondId(kCatalogIdBytes, 'b');

class LabelFactsTest : public testing::Test {
 protected:
  LabelFactsTest() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    env_.emplace(must(meta::Env::open(directory_.path(), options)));
  }
  void commit(const std::function<Result<void>(meta::WriteTxn&)>& change) {
    auto txn = must(meta::WriteTxn::begin(*env_));
    must(change(txn));
    must(txn.commit());
  }
  std::string setting(std::string_view key) {
    const auto txn = must(meta::ReadTxn::begin(*env_));
    const auto value = must(txn.get(meta::catalog::kSettings, key));
    return value ? std::string(value->view()) : std::string();
  }
  // Labels with a sequence number that name the series in `named`.
  Labels labels(std::uint64_t sequence, const SeriesSequences& named, const std::string& id) {
    commit([&](meta::WriteTxn& txn) -> Result<void> {
      VARVE_TRY(catalog::put_sequence(txn, sequence));
      return catalog::put_series_sequences(txn, named);
    });
    Labels made;
    made.catalog_id = id;
    for (const auto key : {catalog::kSequenceSetting, catalog::kSeriesSequencesSetting}) {
      made.records.push_back({ManifestRecord::kSetting, std::string(key), setting(key)});
    }
    return made;
  }
  static std::vector<std::string> lost(const LabelFacts& facts,
                                       const std::map<SeriesId, std::string>& names) {
    return facts.lost_series(names, [](SeriesId id) {
      return "series/" + std::to_string(static_cast<std::uint32_t>(id));
    });
  }

  test::TempDirectory directory_;
  std::optional<meta::Env> env_;
};

TEST_F(LabelFactsTest, NewestLabelsTellWhichSeriesAreMissingOrOld) {
  LabelFacts facts;
  facts.add(kFirst, labels(9, {{kFirst, 9}, {kSecond, 7}}, kFirstId));
  facts.add(kSecond, labels(5, {{kFirst, 3}, {SeriesId{8}, 4}}, kFirstId));
  EXPECT_TRUE(facts.are_newest(kFirst));
  EXPECT_FALSE(facts.are_newest(kSecond));
  EXPECT_FALSE(facts.are_newest(SeriesId{3}));
  const auto old = lost(facts, {{kFirst, "one"}, {kSecond, "two"}});
  ASSERT_EQ(old.size(), 1U) << "older labels name the series 8";
  EXPECT_NE(old[0].find("series/2/labels: the labels of the series two are older"),
            std::string::npos)
      << old[0];
  const auto missing = lost(facts, {{kFirst, "one"}});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_NE(missing[0].find("series/2: the series is missing"), std::string::npos) << missing[0];
}

TEST_F(LabelFactsTest, PresentSeriesKeepTheNumbersOfTheirLabels) {
  LabelFacts facts;
  facts.add(kFirst, labels(9, {{kFirst, 9}, {kSecond, 7}}, kFirstId));
  facts.add(kSecond, labels(5, {}, kSecondId));
  facts.add(kSecond, labels(5, {}, kFirstId));
  must(facts.put(*env_, {{kFirst, "one"}, {kSecond, "two"}, {SeriesId{3}, "three"}}));
  const auto txn = must(meta::ReadTxn::begin(*env_));
  EXPECT_EQ(must(catalog::find_series_sequences(txn)),
            (SeriesSequences{{kFirst, 9}, {kSecond, 5}, {SeriesId{3}, 0}}));
  EXPECT_EQ(must(replaced_catalogs(txn)), (std::vector{kFirstId, kSecondId}));
}

TEST_F(LabelFactsTest, WithoutSequenceNumbersNoSeriesIsLost) {
  LabelFacts facts;
  facts.add(kFirst, labels(0, {{kSecond, 7}}, ""));
  EXPECT_TRUE(lost(facts, {{kFirst, "one"}}).empty());
}

TEST_F(LabelFactsTest, SettingsOfAllLabelsMergeToTheHighest) {
  const auto sequence = [&](std::uint64_t number) {
    return labels(number, {}, "").setting(catalog::kSequenceSetting);
  };
  const auto high = sequence(8);
  const auto low = sequence(3);
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    VARVE_TRY(merge_label_setting(txn, catalog::kSequenceSetting, high));
    VARVE_TRY(merge_label_setting(txn, catalog::kSequenceSetting, low));
    VARVE_TRY(merge_label_setting(txn, "a setting", "first"));
    VARVE_TRY(merge_label_setting(txn, "a setting", "last"));
    return merge_label_setting(txn, catalog::kPoolBirthSetting, "skipped");
  });
  const auto txn = must(meta::ReadTxn::begin(*env_));
  EXPECT_EQ(must(catalog::find_sequence(txn)), 8U);
  EXPECT_EQ(setting("a setting"), "last");
  EXPECT_EQ(setting(catalog::kPoolBirthSetting), "");
}

}  // namespace
}  // namespace varve::maintain
