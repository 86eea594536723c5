// SPDX-License-Identifier: Apache-2.0
#include "cli/series_settings_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
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

TEST(SeriesSettingsWords, SettingsOfTheRepositoryAreParsedAndShown) {
  const SettingWords words{"policy=batched",   "batch=3",       "dead=7.5",      "parity=10",
                           "arrange-rate=50M", "keep-daily=30", "keep-yearly=2", "keep-within=1y6m",
                           "keep-by=sealed",   "guard=off"};
  const auto changes = must(parse_setting_words(words));
  EXPECT_TRUE(changes.repository.arrange && changes.repository.upkeep);
  RepositorySettings settings;
  settings.upkeep.keep.last = 5;
  changes.repository.apply(settings);
  EXPECT_EQ(settings.arrange.policy, ArrangePolicyKind::kBatched);
  EXPECT_EQ(settings.arrange.batch, 3U);
  EXPECT_EQ(settings.arrange.dead_permille, 75U);
  EXPECT_EQ(settings.arrange.parity_percent, 10U);
  EXPECT_EQ(settings.upkeep.arrange_bytes_per_second, 50U << 20);
  EXPECT_EQ(rules_text(settings.upkeep.keep),
            "--keep-last 5 --keep-daily 30 --keep-yearly 2 --keep-within 552d --by sealed");
  EXPECT_FALSE(settings.upkeep.guards_sources);
  // config takes what it prints.
  SettingWords printed;
  for (const auto& [name, text] : repository_setting_texts(settings)) {
    printed.push_back(name + "=" + text);
  }
  RepositorySettings again;
  must(parse_setting_words(printed)).repository.apply(again);
  EXPECT_EQ(again.upkeep, settings.upkeep);
  EXPECT_EQ(repository_setting_texts(again), repository_setting_texts(settings));
}

TEST(SeriesSettingsWords, DeltaIsOnOrOff) {
  for (const auto& [word, delta] :
       {std::pair{"on", 1U}, std::pair{"1", 1U}, std::pair{"off", 0U}, std::pair{"0", 0U}}) {
    const auto changes = must(parse_setting_words({std::string("delta=") + word}));
    ASSERT_EQ(changes.repository.changes.size(), 1U);
    RepositorySettings all;
    all.arrange.delta = 1 - delta;
    changes.repository.changes.front()(all);
    EXPECT_EQ(all.arrange.delta, delta) << word;
    const auto texts = repository_setting_texts(all);
    const auto shown = std::ranges::find(texts, "delta", [](const auto& one) { return one.first; });
    ASSERT_NE(shown, texts.end());
    EXPECT_EQ(shown->second, delta == 1 ? "on" : "off");
  }
  EXPECT_EQ(code_of(parse_setting_words({"delta=2"})), ErrorCode::kUsage);
}

TEST(SeriesSettingsWords, SettingsOfTheRepositoryCanBeReset) {
  RepositorySettings settings;
  must(parse_setting_words({"keep-last=3", "keep-within=2w", "arrange-rate=0"}))
      .repository.apply(settings);
  EXPECT_EQ(settings.upkeep.arrange_bytes_per_second, 0U);
  must(parse_setting_words({"keep-last=0", "keep-within=none", "arrange-rate=default"}))
      .repository.apply(settings);
  EXPECT_EQ(settings.upkeep, UpkeepSettings());
  EXPECT_EQ(rules_text(settings.upkeep.keep), "");
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
  for (const char* word : {"policy=none",
                           "policy=",
                           "batch=0",
                           "fan=1",
                           "window=0",
                           "parity=26",
                           "parity=-1",
                           "parity=1x",
                           "dead=0",
                           "dead=100.1",
                           "dead=7.25",
                           "dead=x",
                           "dead=",
                           "keep-last=-1",
                           "keep-daily=1000001",
                           "keep-daily= 3",
                           "keep-within=3",
                           "keep-by=name",
                           "arrange-rate=fast",
                           "arrange-rate=50MB",
                           "keep-last=",
                           "keep-last=99999999999"}) {
    const auto parsed = parse_setting_words({word});
    EXPECT_EQ(code_of(parsed), ErrorCode::kUsage) << word;
  }
  expect({"keep-last=1", "keep-last=2"}, "is given twice");
  expect({"pool-index=exact", "pool-index=exact"}, "twice");
  expect({"rewrite=har", "rewrite=har"}, "twice");
  expect({"placement=pool", "placement=lineage"}, "twice");
}

}  // namespace
}  // namespace varve::cli
