// SPDX-License-Identifier: Apache-2.0
// Labels that grow: after any change they say what the catalog says, an append that a crash cut
// short is dropped, and damage is told from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "format/data_codecs.h"
#include "io/posix_file_system.h"
#include "maintain/manifest_file.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class LabelsTest : public testing::Test {
 protected:
  LabelsTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  VersionNumber store(const std::string& name) {
    const auto number = must(repository_->open_version(series_, name, folder())).number;
    write_file(*must(repository_->writer(series_)), kRootIno, "f", noise(9000, ++files_));
    must(repository_->seal(series_, number, ""));
    return number;
  }
  void close() {
    must(repository_->close());
    repository_.reset();
  }
  static std::string labels_in(const std::string& path) { return path + "/series/00000001/labels"; }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return varve::test::rest_of(file);
  }
  static void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  maintain::Labels read() const {
    const format::DataCodecs codecs{small_chunks(Codec::kNone)};
    return must(maintain::read_labels(*io::make_posix_file_system(), codecs.frames(),
                                      path_ + "/series/00000001", series_));
  }
  std::size_t versions_in_labels() const {
    const auto labels = read();
    return static_cast<std::size_t>(std::ranges::count(
        labels.records, format::ManifestRecord::kVersion, &maintain::Labels::Record::what));
  }
  static std::vector<std::string> names_in(Repository& repository, SeriesId series) {
    std::vector<std::string> names;
    for (const auto& version : must(repository.versions(series))) {
      names.push_back(version.name);
    }
    return names;
  }
  // Rebuilds the catalog of a copy from its labels and manifests, and compares the versions.
  void expect_rebuilt(const std::vector<std::string>& names) {
    const auto copy = directory_.path() + "/lost";
    copy_crashed(path_, copy);
    fs::remove(copy + "/catalog/data.mdb");
    {
      const auto repair = must(Repair::plan(copy, {}, false, {}));
      const auto report = must(repair->execute({}));
      EXPECT_TRUE(report.problems.empty()) << report.problems.front();
    }
    EXPECT_EQ(names_in(*reopen(copy), series_), names);
  }

  const TempDirectory directory_;
  const std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::uint64_t files_ = 0;
};

TEST_F(LabelsTest, RandomChangesAreRebuiltFromTheLabels) {
  std::mt19937 random(3);
  int name = 0;
  bool grew = false;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const auto all = must(repository_->versions(series_));
    const auto kind = random() % 8;
    if (all.size() < 2 || kind < 4) {
      store("v" + std::to_string(++name));
    } else if (kind == 4) {
      must(repository_->rename_version(series_, all[random() % all.size()].number,
                                       "v" + std::to_string(++name)));
    } else if (kind == 5) {
      must(repository_->lock_version(series_, all[random() % all.size()].number, {1000000000, 0}));
    } else if (kind == 6) {
      must(repository_->delete_versions(series_, {all[random() % all.size()].number}));
    } else {
      const auto open = must(repository_->open_version(series_, "o", folder())).number;
      must(repository_->abandon_version(series_, open, true));
    }
    grew = grew || read().end != read().base_bytes;
    if (round % 6 == 5) expect_rebuilt(names_in(*repository_, series_));
    if (random() % 10 == 0) {
      must(repository_->close());
      repository_.reset();
      repository_ = reopen(path_);
    }
  }
  EXPECT_TRUE(grew);
}

TEST_F(LabelsTest, AnAppendThatACrashCutShortIsDropped) {
  store("v1");
  store("v2");
  const auto before = bytes_of(labels_in(path_));
  must(repository_->rename_version(series_, VersionNumber{1}, "renamed"));
  const auto after = bytes_of(labels_in(path_));
  ASSERT_TRUE(after.starts_with(before)) << "the change was appended";
  const auto copy = directory_.path() + "/crashed";
  for (std::size_t bytes = before.size(); bytes <= after.size(); bytes += 7) {
    SCOPED_TRACE(bytes);
    copy_crashed(path_, copy);
    put(labels_in(copy), after.substr(0, bytes));
    auto opened = reopen(copy);
    EXPECT_EQ(names_in(*opened, series_), (std::vector<std::string>{"renamed", "v2"}));
    const auto report = must(opened->check({}, {}));
    EXPECT_TRUE(report.damages.empty());
    opened.reset();
    // The opening wrote the labels again, so a rebuilt catalog has the new name.
    fs::remove(copy + "/catalog/data.mdb");
    must(must(Repair::plan(copy, {}, false, {}))->execute({}));
    EXPECT_EQ(names_in(*reopen(copy), series_), (std::vector<std::string>{"renamed", "v2"}));
  }
  // The disk may also have the new length without the bytes.
  copy_crashed(path_, copy);
  put(labels_in(copy), before + std::string(after.size() - before.size(), '\0'));
  fs::remove(copy + "/catalog/data.mdb");
  must(must(Repair::plan(copy, {}, false, {}))->execute({}));
  EXPECT_EQ(names_in(*reopen(copy), series_), (std::vector<std::string>{"v1", "v2"}));
}

// The file ends with a whole update, so its bytes do not show that later updates are gone.
TEST_F(LabelsTest, UpdatesThatWereCutOffAreWrittenAgainBeforeTheNextUpdate) {
  store("v1");
  store("v2");
  const auto before = bytes_of(labels_in(path_));
  store("v3");
  close();
  ASSERT_TRUE(bytes_of(labels_in(path_)).starts_with(before)) << "v3 is in an update";
  put(labels_in(path_), before);
  repository_ = reopen(path_);
  store("v4");
  close();
  EXPECT_EQ(versions_in_labels(), 4U);
  expect_rebuilt({"v1", "v2", "v3", "v4"});
}

TEST_F(LabelsTest, UpdatesThatWereCutOffAreWrittenAgainBeforeADeletion) {
  store("v1");
  store("v2");
  const auto before = bytes_of(labels_in(path_));
  store("v3");
  const auto number = store("v4");
  close();
  put(labels_in(path_), before);
  repository_ = reopen(path_);
  must(repository_->rename_version(series_, number, "renamed"));
  close();
  expect_rebuilt({"v1", "v2", "v3", "renamed"});
}

TEST_F(LabelsTest, ACheckFindsUpdatesThatWereCutOffAndARepairWritesThemAgain) {
  store("v1");
  store("v2");
  const auto before = bytes_of(labels_in(path_));
  store("v3");
  close();
  OpenOptions options;
  options.read_only = true;
  EXPECT_TRUE(must(reopen(path_, options)->check({}, {})).damages.empty());
  put(labels_in(path_), before);
  const auto report = must(reopen(path_, options)->check({}, {}));
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_EQ(report.damages[0].where, labels_in(path_));
  {
    const auto repair = must(Repair::plan(path_, {}, false, {}));
    ASSERT_EQ(repair->steps().size(), 1U);
    EXPECT_EQ(repair->steps()[0].where, labels_in(path_));
    must(repair->execute({}));
  }
  repository_ = reopen(path_);
  close();
  EXPECT_EQ(versions_in_labels(), 3U);
  EXPECT_TRUE(must(reopen(path_, options)->check({}, {})).damages.empty());
  EXPECT_TRUE(must(Repair::plan(path_, {}, false, {}))->steps().empty());
  expect_rebuilt({"v1", "v2", "v3"});
}

// After a crash, the labels may be older, and the next writer completes them.
TEST_F(LabelsTest, LabelsThatACrashLeftBehindAreNoDamage) {
  store("v1");
  const auto before = bytes_of(labels_in(path_));
  store("v2");
  const auto crashed = directory_.path() + "/crashed";
  copy_crashed(path_, crashed);
  put(labels_in(crashed), before);
  OpenOptions options;
  options.read_only = true;
  EXPECT_TRUE(must(reopen(crashed, options)->check({}, {})).damages.empty());
}

TEST_F(LabelsTest, DamageBeforeTheLastUpdateIsNoTornEnd) {
  store("v1");
  const auto before = bytes_of(labels_in(path_)).size();
  must(repository_->rename_version(series_, VersionNumber{1}, "a"));
  const auto between = bytes_of(labels_in(path_)).size();
  must(repository_->rename_version(series_, VersionNumber{1}, "b"));
  must(repository_->close());
  repository_.reset();
  const auto labels = bytes_of(labels_in(path_));
  ASSERT_LT(between, labels.size());
  for (std::size_t at = before; at < between; at += 5) {
    SCOPED_TRACE(at);
    auto damaged = labels;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    put(labels_in(path_), damaged);
    auto options = quiet_options();
    options.read_only = true;
    const auto report = must(reopen(path_, options)->check({}, {}));
    EXPECT_EQ(report.damages.size(), 1U);
  }
  must(must(Repair::plan(path_, {}, false, {}))->execute({}));
  repository_ = reopen(path_);
  EXPECT_TRUE(must(repository_->check({}, {})).damages.empty());
  expect_rebuilt({"b"});
}

TEST_F(LabelsTest, LabelsOfAnEarlierReleaseAreReadAndWrittenAgain) {
  store("v1");
  must(repository_->close());
  repository_.reset();
  // The labels as format 1, which has no updates.
  const auto labels = read();
  format::ManifestHeader identity = labels.header;
  identity.grows = false;
  const format::DataCodecs codecs{small_chunks(Codec::kNone)};
  std::string body;
  format::ManifestEncoder encoder(identity, codecs.frames(), format::Compression{},
                                  [&](std::string_view bytes) -> Result<void> {
                                    body += bytes;
                                    return {};
                                  });
  must(encoder.add(format::ManifestRecord::kSuperblock, "", labels.superblock));
  must(encoder.add(format::ManifestRecord::kSeries, "", labels.series));
  must(encoder.add(format::ManifestRecord::kSetting, maintain::kCatalogIdSetting,
                   labels.catalog_id));
  for (const auto& record : labels.records)
    must(encoder.add(record.what, record.key, record.value));
  put(labels_in(path_), format::encode_manifest_header(must(encoder.finish())) + body);
  fs::remove(path_ + "/settled");  // An earlier release knows no note.
  EXPECT_FALSE(read().header.grows);
  expect_rebuilt({"v1"});
  repository_ = reopen(path_);
  EXPECT_TRUE(read().header.grows);
  store("v2");
  expect_rebuilt({"v1", "v2"});
}

}  // namespace
}  // namespace varve::test
