// SPDX-License-Identifier: Apache-2.0
#include "cli/series_settings_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/temp_repository.h"

namespace varve::cli {
namespace {

using test::code_of;
using test::must;
using SettingWords = std::vector<std::string>;

TEST(SeriesSettingsWords, WordsWithAKeyAreTakenFromTheEnd) {
  SettingWords words{"/repo", "host", "placement=pool", "rewrite=har"};
  EXPECT_EQ(take_setting_words(words), (SettingWords{"placement=pool", "rewrite=har"}));
  EXPECT_EQ(words, (SettingWords{"/repo", "host"}));
  EXPECT_TRUE(take_setting_words(words).empty());
  EXPECT_EQ(words.size(), 2U);
}

TEST(SeriesSettingsWords, PathsWithAnEqualsSignAreNoSettings) {
  SettingWords words{"./a=b", "/mnt/x=y", "=", "a=b/c"};
  EXPECT_EQ(take_setting_words(words), (SettingWords{"=", "a=b/c"}));
  EXPECT_EQ(words, (SettingWords{"./a=b", "/mnt/x=y"}));
}

TEST(SeriesSettingsWords, EachKeyIsParsed) {
  const auto both = must(parse_setting_words({"rewrite=har+cap", "placement=lineage+pool"}));
  EXPECT_EQ(both.series.placement, Placement::kLineagePool);
  EXPECT_EQ(both.series.rewrite, Rewrite::kHarCap);
  const auto one = must(parse_setting_words({"placement=lineage"}));
  EXPECT_EQ(one.series.placement, Placement::kLineage);
  EXPECT_FALSE(one.series.rewrite);
  const auto none = must(parse_setting_words({}));
  EXPECT_FALSE(none.series.placement || none.series.rewrite);
}

TEST(SeriesSettingsWords, IndexOfThePoolIsParsed) {
  const auto exact = must(parse_setting_words({"pool-index=exact"}));
  EXPECT_EQ(exact.pool_index, PoolIndexChoice());
  const auto nine = must(parse_setting_words({"pool-index=zero-chunk:9", "rewrite=har"}));
  EXPECT_EQ(nine.pool_index, (PoolIndexChoice{PoolIndexKind::kZeroChunk, 9}));
  EXPECT_EQ(nine.series.rewrite, Rewrite::kHar);
  EXPECT_EQ(must(parse_setting_words({"pool-index=stream"})).pool_index,
            (PoolIndexChoice{PoolIndexKind::kStream, 0}));
  EXPECT_EQ(must(parse_setting_words({"pool-index=zero-chunk"})).pool_index,
            (PoolIndexChoice{PoolIndexKind::kZeroChunk, 0}));
}

TEST(SeriesSettingsWords, MistakesAreRefusedWithWhatIsValid) {
  const auto expect = [](const SettingWords& words, const char* said) {
    const auto parsed = parse_setting_words(words);
    ASSERT_FALSE(parsed) << words.front();
    EXPECT_EQ(parsed.error().code(), ErrorCode::kUsage);
    EXPECT_NE(parsed.error().message().find(said), std::string::npos) << parsed.error().message();
  };
  expect({"color=red"}, "the settings are placement and rewrite");
  expect({"=pool"}, "unknown setting");
  expect({"Placement=pool"}, "unknown setting");
  expect({"placement=forest"}, "lineage, lineage+pool, pool");
  expect({"placement="}, "lineage, lineage+pool, pool");
  expect({"rewrite=cap+har"}, "none, har, cap, cbr, har+cap, har+cbr");
  expect({"pool-index=zero-chunk:5"}, "zero-chunk:N with N from 6 to 10");
  expect({"pool-index=zero-chunk:06"}, "exact, stream, zero-chunk");
  expect({"pool-index="}, "exact, stream, zero-chunk");
  expect({"pool-index=exact", "pool-index=exact"}, "twice");
  expect({"rewrite=har", "rewrite=har"}, "twice");
  expect({"placement=pool", "placement=lineage"}, "twice");
}

}  // namespace
}  // namespace varve::cli
