// SPDX-License-Identifier: Apache-2.0
// Settings of series: what stores them, and what older programs are told.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "format/frame_codec.h"
#include "format/superblock.h"
#include "io/posix_file_system.h"
#include "maintain/manifest_file.h"
#include "support/closed_catalog.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

constexpr SeriesSettings kHar{Placement::kLineage, Rewrite::kHar};

class SeriesSettingsTest : public testing::Test {
 protected:
  SeriesSettingsTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    for (const char* name : {"a", "b", "c"}) must(repository_->create_series(name));
    a_ = must(repository_->find_series("a")).id;
  }

  SeriesSettings settings_of(const std::string& series) {
    const auto info = must(repository_->find_series(series));
    return {info.placement, info.rewrite};
  }
  void close() {
    must(repository_->close());
    repository_.reset();
  }
  void close_and_reopen() {
    close();
    repository_ = reopen(path_);
  }
  [[nodiscard]] std::string superblock() const {
    std::ifstream in(path_ + "/varve.repo", std::ios::binary);
    return varve::test::rest_of(in);
  }
  [[nodiscard]] bool needs_pool() const {
    return must(format::decode_superblock(superblock())).needs_pool;
  }
  // Returns the copy of the superblock in a series' labels.
  [[nodiscard]] std::string copy_in(int series) const {
    const auto files = io::make_posix_file_system();
    const auto codec = format::make_plain_frame_codec({});
    const auto labels = must(
        maintain::read_labels(*files, *codec, path_ + "/series/0000000" + std::to_string(series),
                              static_cast<SeriesId>(series)));
    return labels.superblock;
  }
  void expect_copies() const {
    for (int series = 1; series <= 3; ++series) EXPECT_EQ(copy_in(series), superblock()) << series;
  }
  VersionNumber open_version(const std::string& name) {
    const auto number = must(repository_->open_version(a_, name, folder())).number;
    write_file(*must(repository_->writer(a_)), kRootIno, "f", noise(20000, 1));
    return number;
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId a_{};
};

TEST_F(SeriesSettingsTest, ARepositoryWithoutChoicesNeedsNoFeature) {
  EXPECT_EQ(settings_of("a"), SeriesSettings());
  EXPECT_EQ(must(repository_->series_defaults()), SeriesSettings());
  must(repository_->change_series(a_, {}));
  must(repository_->change_series(a_, {Placement::kLineage, Rewrite::kNone}));
  must(repository_->change_series_defaults({Placement::kLineage, Rewrite::kNone}));
  EXPECT_FALSE(needs_pool());
}

TEST_F(SeriesSettingsTest, AChangeIsKeptAndNamesTheFeatureInAllCopies) {
  EXPECT_EQ(must(repository_->change_series(a_, {.rewrite = Rewrite::kHar})), kHar);
  EXPECT_EQ(settings_of("a"), kHar);
  EXPECT_EQ(settings_of("b"), SeriesSettings());
  EXPECT_TRUE(needs_pool());
  expect_copies();
  close_and_reopen();
  EXPECT_EQ(settings_of("a"), kHar);
  // The name stays: older versions of the series may use what the feature stands for.
  must(repository_->change_series(a_, {.rewrite = Rewrite::kNone}));
  close_and_reopen();
  EXPECT_EQ(settings_of("a"), SeriesSettings());
  EXPECT_TRUE(needs_pool());
  expect_copies();
}

TEST_F(SeriesSettingsTest, NewSeriesGetTheDefaultsOfTheirTime) {
  EXPECT_EQ(must(repository_->change_series_defaults({.rewrite = Rewrite::kHar})), kHar);
  EXPECT_TRUE(needs_pool());
  expect_copies();
  EXPECT_EQ(settings_of("a"), SeriesSettings());
  must(repository_->create_series("d"));
  must(repository_->create_series("e", {.rewrite = Rewrite::kCap}));
  close_and_reopen();
  EXPECT_EQ(must(repository_->series_defaults()), kHar);
  EXPECT_EQ(settings_of("d"), kHar);
  EXPECT_EQ(settings_of("e").rewrite, Rewrite::kCap);
  must(repository_->change_series_defaults({.rewrite = Rewrite::kNone}));
  must(repository_->create_series("f"));
  EXPECT_EQ(settings_of("f"), SeriesSettings());
}

TEST_F(SeriesSettingsTest, CreatingASeriesWithAChoiceNamesTheFeature) {
  must(repository_->create_series("d", {.rewrite = Rewrite::kCbr}));
  EXPECT_TRUE(needs_pool());
  expect_copies();
}

TEST_F(SeriesSettingsTest, PlacementDoesNotChangeWhileAVersionIsOpen) {
  const auto number = open_version("v.partial");
  const auto refused = repository_->change_series(a_, {.placement = Placement::kPool});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kBusy);
  EXPECT_NE(refused.error().message().find("a/v.partial"), std::string::npos);
  EXPECT_NE(refused.error().message().find("varve seal"), std::string::npos);
  EXPECT_FALSE(needs_pool());
  must(repository_->change_series(a_, {Placement::kLineage, Rewrite::kHar}));
  EXPECT_EQ(settings_of("a"), kHar) << "the placement is the same";
  must(repository_->seal(a_, number, ""));
  const auto sealed = repository_->change_series(a_, {.placement = Placement::kPool});
  if (check_placement(Placement::kPool)) {
    EXPECT_EQ(must(sealed), (SeriesSettings{Placement::kPool, Rewrite::kHar}));
  } else {
    EXPECT_EQ(code_of(sealed), ErrorCode::kUnsupported);
    EXPECT_EQ(settings_of("a"), kHar);
  }
}

TEST_F(SeriesSettingsTest, BadChangesAreRefused) {
  EXPECT_EQ(code_of(repository_->change_series(SeriesId{77}, {.rewrite = Rewrite::kHar})),
            ErrorCode::kNotFound);
  const SeriesOptions unknown[] = {{.placement = static_cast<Placement>(9)},
                                   {.rewrite = static_cast<Rewrite>(9)}};
  for (const auto& options : unknown) {
    EXPECT_EQ(code_of(repository_->change_series(a_, options)), ErrorCode::kUnsupported);
    EXPECT_EQ(code_of(repository_->change_series_defaults(options)), ErrorCode::kUnsupported);
    EXPECT_EQ(code_of(repository_->create_series("d", options)), ErrorCode::kUnsupported);
  }
  EXPECT_FALSE(needs_pool());
  auto reading = quiet_options();
  reading.read_only = true;
  close();
  repository_ = reopen(path_, reading);
  EXPECT_EQ(code_of(repository_->change_series(a_, {.rewrite = Rewrite::kHar})),
            ErrorCode::kReadOnly);
  EXPECT_EQ(code_of(repository_->change_series_defaults({.rewrite = Rewrite::kHar})),
            ErrorCode::kReadOnly);
  EXPECT_EQ(must(repository_->series_defaults()), SeriesSettings());
}

TEST_F(SeriesSettingsTest, SettingsSurviveTheLossOfTheCatalog) {
  const auto placement =
      check_placement(Placement::kLineagePool) ? Placement::kLineagePool : Placement::kLineage;
  const SeriesSettings chosen{placement, Rewrite::kHarCap};
  must(repository_->change_series(a_, {chosen.placement, chosen.rewrite}));
  must(repository_->change_series_defaults({.rewrite = Rewrite::kCbr}));
  must(repository_->seal(a_, open_version("v"), ""));
  close();
  std::filesystem::remove_all(path_ + "/catalog");
  std::filesystem::remove(path_ + "/varve.repo");
  must(must(Repair::plan(path_, {}, false, {}))->execute({}));
  EXPECT_TRUE(needs_pool());
  repository_ = reopen(path_);
  EXPECT_EQ(settings_of("a"), chosen);
  EXPECT_EQ(settings_of("b"), SeriesSettings());
  EXPECT_EQ(must(repository_->series_defaults()).rewrite, Rewrite::kCbr);
  close();
  // Without the labels, the manifest has the series' record.
  std::filesystem::remove_all(path_ + "/catalog");
  std::filesystem::remove(path_ + "/series/00000001/labels");
  must(must(Repair::plan(path_, {}, false, {}))->execute({}));
  repository_ = reopen(path_);
  EXPECT_EQ(settings_of("a"), chosen);
}

TEST_F(SeriesSettingsTest, ASuperblockThatLacksTheFeatureIsCompleted) {
  must(repository_->change_series(a_, {.rewrite = Rewrite::kHar}));
  close();
  auto older = must(format::decode_superblock(superblock()));
  older.needs_pool = false;
  std::ofstream(path_ + "/varve.repo", std::ios::binary) << format::encode_superblock(older);
  auto reading = quiet_options();
  reading.read_only = true;
  reopen(path_, reading);
  EXPECT_FALSE(needs_pool()) << "a reader wrote it";
  repository_ = reopen(path_);
  EXPECT_TRUE(needs_pool());
  expect_copies();
}

TEST_F(SeriesSettingsTest, RepairPrefersACopyWithTheFeature) {
  // As after a crash before the labels of the first and the last series were written.
  const auto labels = [&](int series) {
    return path_ + "/series/0000000" + std::to_string(series) + "/labels";
  };
  for (const int series : {1, 3}) {
    std::filesystem::copy_file(labels(series), labels(series) + ".older");
  }
  const auto b = must(repository_->find_series("b")).id;
  must(repository_->change_series(b, {.rewrite = Rewrite::kHar}));
  close();
  for (const int series : {1, 3}) {
    std::filesystem::rename(labels(series) + ".older", labels(series));
    ASSERT_NE(copy_in(series), superblock());
  }
  std::filesystem::remove(path_ + "/varve.repo");
  must(must(Repair::plan(path_, {}, false, {}))->execute({}));
  EXPECT_TRUE(needs_pool());
  // The repair removed the note of a settled repository, so the next writer completes the copies.
  repository_ = reopen(path_);
  expect_copies();
}

TEST_F(SeriesSettingsTest, InitialPlacementOfThePoolNamesTheFeature) {
  auto parameters = small_chunks(Codec::kNone);
  parameters.placement = Placement::kPool;
  const auto path = directory_.path() + "/p";
  const auto made = Repository::create(path, parameters);
  if (!check_placement(Placement::kPool)) {
    EXPECT_EQ(made.error().code(), ErrorCode::kUnsupported);
    return;
  }
  must(made);
  close();
  path_ = path;
  EXPECT_TRUE(needs_pool());
  repository_ = reopen(path_);
  EXPECT_EQ(must(repository_->create_series("a")).placement, Placement::kPool);
  EXPECT_EQ(must(repository_->change_series_defaults({.placement = Placement::kLineage})),
            SeriesSettings());
  close_and_reopen();
  EXPECT_EQ(must(repository_->series_defaults()), SeriesSettings());
  EXPECT_EQ(must(repository_->create_series("b")).placement, Placement::kLineage);
}

TEST_F(SeriesSettingsTest, TheLastNumberIsGivenToNoSeries) {
  close();
  change_closed_catalog(path_, [](meta::WriteTxn& txn) {
    catalog::SeriesRecord record;
    record.id = SeriesId{UINT32_MAX - 1};
    record.name = "forged";
    must(catalog::put_series(txn, record));
  });
  repository_ = reopen(path_);
  EXPECT_EQ(code_of(repository_->create_series("d")), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace varve::test
