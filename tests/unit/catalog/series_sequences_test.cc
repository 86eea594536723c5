// SPDX-License-Identifier: Apache-2.0
// The sequence numbers of the series: what changes them, their bound, and damaged bytes.
#include "catalog/series_sequences.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "catalog/sequence_record.h"
#include "catalog/series_catalog.h"
#include "catalog_fixture.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::catalog {
namespace {

using varve::test::must;

class SeriesSequencesTest : public CatalogTest {
 protected:
  void put(std::uint32_t series) {
    commit([&](meta::WriteTxn& txn) {
      SeriesRecord record;
      record.id = SeriesId{series};
      record.name = "s" + std::to_string(series);
      return put_series(txn, record);
    });
  }
  void put_version_of(std::uint32_t series, bool unfinished) {
    commit([&](meta::WriteTxn& txn) {
      VersionRecord record;
      record.series = SeriesId{series};
      record.number = VersionNumber{1};
      record.name = "v";
      record.root.mode = S_IFDIR | 0700;
      record.unfinished = unfinished;
      return put_version(txn, record);
    });
  }
  void count() { catalog_.before_commits(counts_in_sequence, advance_sequence); }
  SeriesSequences present() {
    return must(find_series_sequences(must(meta::ReadTxn::begin(catalog_))));
  }
};

TEST_F(SeriesSequencesTest, EachChangeOfASeriesNotesTheNumberOfItsCommit) {
  put(1);
  EXPECT_TRUE(present().empty()) << "commits are not counted";
  count();
  put(2);
  EXPECT_EQ(present(), (SeriesSequences{{SeriesId{1}, 0}, {SeriesId{2}, 1}}));
  put_version_of(1, true);
  EXPECT_EQ(present().at(SeriesId{1}), 0U) << "labels leave out an unfinished version";
  put_version_of(1, false);
  EXPECT_EQ(present().at(SeriesId{1}), 3U);
  commit([](meta::WriteTxn& txn) { return erase_version(txn, SeriesId{1}, VersionNumber{1}); });
  EXPECT_EQ(present().at(SeriesId{1}), 4U);
  commit([](meta::WriteTxn& txn) { return erase_series(txn, SeriesId{1}); });
  EXPECT_EQ(present(), (SeriesSequences{{SeriesId{2}, 1}}));
}

TEST_F(SeriesSequencesTest, OnlyTheHighestNumbersStay) {
  SeriesSequences many;
  for (std::uint32_t i = 1; i <= kSeriesSequencesMax + 5; ++i) many[SeriesId{i}] = 5000 - i;
  commit([&](meta::WriteTxn& txn) { return put_series_sequences(txn, many); });
  const auto stored = present();
  EXPECT_EQ(stored.size(), kSeriesSequencesMax);
  EXPECT_TRUE(stored.contains(SeriesId{kSeriesSequencesMax}));
  EXPECT_FALSE(stored.contains(SeriesId{kSeriesSequencesMax + 1}));
}

TEST_F(SeriesSequencesTest, DamagedBytesAreRefused) {
  commit([](meta::WriteTxn& txn) {
    return put_series_sequences(txn, {{SeriesId{1}, 7}, {SeriesId{2}, 8}});
  });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  const auto value = must(txn.get(meta::catalog::kSettings, kSeriesSequencesSetting));
  const std::string whole(value->view());
  ASSERT_EQ(whole.size(), 24U);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_EQ(decode_series_sequences(whole.substr(0, bytes)).has_value(), bytes % 12 == 0);
  }
  EXPECT_FALSE(decode_series_sequences(whole + whole)) << "numbers do not ascend";
  EXPECT_FALSE(decode_series_sequences(std::string(12 * (kSeriesSequencesMax + 1), '\0')));
}

TEST_F(SeriesSequencesTest, TheLastSequenceNumberIsNotGiven) {
  const auto commit_series = [&](std::uint32_t series) -> Result<void> {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
    SeriesRecord record;
    record.id = SeriesId{series};
    record.name = "s" + std::to_string(series);
    VARVE_TRY(put_series(txn, record));
    return txn.commit();
  };
  commit([](meta::WriteTxn& txn) { return put_sequence(txn, UINT64_MAX - 1); });
  count();
  const auto refused = commit_series(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kTooLarge);
  EXPECT_EQ(must(find_sequence(must(meta::ReadTxn::begin(catalog_)))), UINT64_MAX - 1);
}

}  // namespace
}  // namespace varve::catalog
