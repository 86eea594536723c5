// SPDX-License-Identifier: Apache-2.0
// Checks that the checker finds each kind of damage, and the files that it touches.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "format/container.h"
#include "meta/schema.h"
#include "support/closed_catalog.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/beside.h"
#include "varve/check.h"

namespace varve::test {
namespace {

class CheckerTest : public testing::TestWithParam<Codec> {
 protected:
  CheckerTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(GetParam())));
    repository_ = reopen(path_);
    const auto series = must(repository_->create_series("s")).id;
    for (const char* name : {"v1", "v2"}) {
      const auto number = must(repository_->open_version(series, name, folder())).number;
      const auto version = must(repository_->writer(series));
      const auto sub = must(version->create(kRootIno, "d", folder())).ino;
      write_file(*version, kRootIno, "a", noise(200000, 1));
      write_file(*version, sub, "b", noise(200000, 2));
      write_file(*version, kRootIno, "z", name == std::string("v2") ? noise(90000, 3) : "");
      must(repository_->seal(series, number, ""));
    }
    segment_ = path_ + "/series/00000001/active/00000000.seg";
  }

  CheckReport check(bool verify_chunks = false) {
    repository_.reset();
    OpenOptions options;
    options.read_only = true;
    repository_ = reopen(path_, options);
    CheckOptions how;
    how.verify_chunks = verify_chunks;
    return must(repository_->check(how, {}));
  }
  /// Commits a change to the catalog of the closed repository.
  template <typename Change>
  void change_catalog(const Change& change) {
    repository_.reset();
    change_closed_catalog(path_, change);
  }
  void flip(const std::string& file, std::uint64_t offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    const auto byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(static_cast<char>(byte ^ 0x20));
  }
  static std::set<std::string> affected(const CheckReport& report) {
    std::set<std::string> all;
    for (const auto& damage : report.damages) {
      all.insert(damage.affected.begin(), damage.affected.end());
    }
    return all;
  }
  std::string read_bytes(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return varve::test::rest_of(in);
  }

  TempDirectory directory_;
  std::string path_;
  std::string segment_;
  std::unique_ptr<Repository> repository_;
};

const std::set<std::string> kAll = {"s/v1/a", "s/v1/d/b", "s/v2/a", "s/v2/d/b"};

TEST_P(CheckerTest, WholeRepositoryHasNoDamage) {
  for (const bool verify : {false, true}) {
    const auto report = check(verify);
    EXPECT_TRUE(report.damages.empty());
    EXPECT_EQ(report.versions, 2U);
    EXPECT_EQ(report.containers, 2U);
    EXPECT_GT(report.chunks, 50U);
    EXPECT_GT(report.bytes_read, 400000U);
  }
}

TEST_P(CheckerTest, LostContentOfAnOpenVersionIsReported) {
  const auto series = must(repository_->find_series("s")).id;
  must(repository_->open_version(series, "v3", folder()));
  {
    const auto version = must(repository_->writer(series));
    write_file(*version, kRootIno, "c", noise(200000, 4));
    must(version->sync());
  }
  EXPECT_TRUE(check().damages.empty());
  const auto overlay =
      std::filesystem::directory_iterator(path_ + "/staging")->path().string() + "/overlay";
  for (const std::uint64_t offset : {16U, 4096U + 16U}) flip(overlay + "/data.mdb", offset);
  auto report = check();
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_EQ(affected(report), std::set<std::string>{"s/v3"});
  std::filesystem::remove_all(path_ + "/staging");
  report = check();
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_EQ(affected(report), std::set<std::string>{"s/v3"});
}

TEST_P(CheckerTest, EachRegionOfASegmentIsCovered) {
  const auto image = read_bytes(segment_);
  const auto header_bytes = must(format::container_header_length(
      base::as_bytes(image).first(format::kContainerFixedHeaderBytes)));
  const auto header =
      must(format::decode_container_header(base::as_bytes(image).first(header_bytes)));
  ASSERT_GE(header.frames.size(), 4U);
  struct Place {
    std::uint64_t offset;
    std::set<std::string> affected;
  };
  const auto& last = header.frames.back();
  std::vector<Place> places = {
      {0, kAll},                                       // Magic number.
      {format::kContainerFixedHeaderBytes - 1, kAll},  // Header.
      {format::kContainerFixedHeaderBytes + 5, kAll},  // Tables.
      {header_bytes - 1, kAll},                        // Padding of the header.
      {header_bytes, {"s/v1/a", "s/v2/a"}},            // First frame.
      {header_bytes + last.offset + last.stored_bytes - 1, {"s/v1/d/b", "s/v2/d/b"}},
  };
  if (header.data_bytes % format::kContainerAlignment != 0) {
    places.push_back({header_bytes + header.data_bytes, {}});  // Padding of the data.
  }
  for (const auto& place : places) {
    flip(segment_, place.offset);
    const auto report = check();
    EXPECT_EQ(report.damages.size(), 1U) << place.offset;
    EXPECT_EQ(affected(report), place.affected) << place.offset;
    for (const auto& damage : report.damages) {
      EXPECT_TRUE(damage.where.starts_with(segment_)) << damage.where;
      EXPECT_FALSE(damage.what.empty());
    }
    flip(segment_, place.offset);
  }
  EXPECT_TRUE(check().damages.empty());
}

TEST_P(CheckerTest, EveryByteOfASmallSampleIsCovered) {
  const auto size = std::filesystem::file_size(segment_);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto offset = (i * 2654435761U) % size;
    flip(segment_, offset);
    EXPECT_EQ(check().damages.size(), 1U) << offset;
    flip(segment_, offset);
  }
}

TEST_P(CheckerTest, MissingSegmentNamesEveryFileInIt) {
  std::filesystem::rename(segment_, segment_ + ".gone");
  EXPECT_EQ(affected(check()), kAll);
  std::filesystem::rename(segment_ + ".gone", segment_);
  EXPECT_TRUE(check().damages.empty());
}

TEST_P(CheckerTest, TruncatedSegmentNamesTheFilesBehindTheCut) {
  const auto size = std::filesystem::file_size(segment_);
  std::filesystem::resize_file(segment_, size - 8192);
  EXPECT_EQ(affected(check()), (std::set<std::string>{"s/v1/d/b", "s/v2/d/b"}));
}

TEST_P(CheckerTest, DamagedIndexSnapshotIsNamedAndTouchesNoFile) {
  const auto snapshot = path_ + "/series/00000001/index-00000002.snap";
  flip(snapshot, 40);
  auto report = check();
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_EQ(report.damages[0].where, snapshot);
  EXPECT_TRUE(report.damages[0].affected.empty());
  std::filesystem::remove(snapshot);
  report = check();
  EXPECT_TRUE(report.damages.empty());
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0].where, snapshot);
}

TEST_P(CheckerTest, ArrangedRepositoryHasNoDamageAndADamagedVolumeIsFound) {
  const auto series = must(repository_->find_series("s")).id;
  ArrangeSettings settings;
  settings.window = 2;
  must(repository_->set_arrange_settings(settings));
  for (const char* name : {"v3", "v4"}) {
    const auto number = must(repository_->open_version(series, name, folder())).number;
    const auto version = must(repository_->writer(series));
    write_file(*version, kRootIno, "a", noise(200000, 1));
    write_file(*version, kRootIno, "z", noise(90000, 3));
    must(repository_->seal(series, number, ""));
  }
  must(repository_->arrange(series, {}));
  for (const bool verify : {false, true}) {
    EXPECT_TRUE(check(verify).damages.empty());
  }
  std::string volume;
  for (const auto& at : std::filesystem::recursive_directory_iterator(path_)) {
    if (at.path().extension() == ".vol") volume = at.path();
  }
  ASSERT_FALSE(volume.empty());
  flip(volume, std::filesystem::file_size(volume) - 1);
  const auto report = check();
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_TRUE(report.damages[0].where.starts_with(volume));
  EXPECT_FALSE(report.damages[0].affected.empty());
  flip(volume, std::filesystem::file_size(volume) - 1);
  std::filesystem::resize_file(volume, std::filesystem::file_size(volume) - 1);
  CheckOptions quick;
  quick.read_data = false;
  EXPECT_FALSE(must(repository_->check(quick, {})).damages.empty());
}

TEST_P(CheckerTest, ProgressEndsAtTheTotal) {
  CheckProgress last;
  must(repository_->check({}, [&](const CheckProgress& now) {
    EXPECT_GE(now.bytes_done, last.bytes_done);
    EXPECT_GT(now.bytes_total, 0U);
    last = now;
  }));
  EXPECT_EQ(last.bytes_done, last.bytes_total);
}

TEST_P(CheckerTest, RecordOfHardLinksThatDoesNotFitIsDamage) {
  change_catalog([](meta::WriteTxn& txn) {
    must(catalog::put_version_links(txn, SeriesId{1}, VersionNumber{2},
                                    catalog::LinkTable::from({{1, 5}, {2, 5}})));
  });
  const auto report = check();
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_NE(report.damages[0].what.find("hard links"), std::string::npos);
}

TEST_P(CheckerTest, RecordOfChunksThatLacksOneOfTheNewestVersionIsDamage) {
  change_catalog([](meta::WriteTxn& txn) {
    auto runs = must(catalog::version_chunks(txn, SeriesId{1}, VersionNumber{2})).runs();
    ASSERT_FALSE(runs.empty());
    if (--runs.back().count == 0) runs.pop_back();
    must(catalog::put_version_chunks(txn, SeriesId{1}, VersionNumber{2},
                                     base::IdRuns::from(std::move(runs))));
  });
  const auto report = check();
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_NE(report.damages[0].what.find("not in the record of its chunks"), std::string::npos);
}

TEST_P(CheckerTest, OpenVersionDoesNotDisturbTheCheck) {
  const auto series = must(repository_->find_series("s")).id;
  must(repository_->open_version(series, "v3", folder()));
  const auto version = must(repository_->writer(series));
  write_file(*version, kRootIno, "new", noise(300000, 9));
  must(version->sync());
  write_file(*version, kRootIno, "unsynced", noise(300000, 10));
  const auto report = must(repository_->check({}, {}));
  EXPECT_TRUE(report.damages.empty());
  EXPECT_EQ(report.versions, 2U);
}

TEST_P(CheckerTest, DamagedAndForeignManifestsAreFound) {
  const auto folder_path = path_ + "/series/00000001/manifests/";
  for (const char* name : {"00000001.man", "00000002.man"}) {
    const auto size = std::filesystem::file_size(folder_path + name);
    for (const std::uint64_t offset : {std::uint64_t{5}, std::uint64_t{70}, size - 1}) {
      flip(folder_path + name, offset);
      const auto report = check();
      ASSERT_EQ(report.damages.size(), 1U) << offset;
      EXPECT_EQ(report.damages[0].where, folder_path + name);
      flip(folder_path + name, offset);
    }
  }
  std::filesystem::rename(folder_path + "00000001.man", folder_path + "kept");
  EXPECT_EQ(check().damages.size(), 1U);
  std::filesystem::copy_file(folder_path + "00000002.man", folder_path + "00000001.man");
  EXPECT_EQ(check().damages.size(), 1U);
  std::filesystem::remove(folder_path + "00000001.man");
  std::filesystem::rename(folder_path + "kept", folder_path + "00000001.man");
  EXPECT_TRUE(check().damages.empty());
  flip(path_ + "/series/00000001/labels", 100);
  EXPECT_EQ(check().damages.size(), 1U);
}

TEST_P(CheckerTest, ScrubGoesOnWhereItWasStopped) {
  std::stop_source source;
  ScrubOptions options;
  options.stop = source.get_token();
  options.bytes_per_second = 1U << 30;  // Makes the scrub read one container at a time.
  const auto first =
      must(repository_->scrub(options, [&](const CheckProgress&) { source.request_stop(); }));
  EXPECT_FALSE(first.check.finished);
  EXPECT_FALSE(first.resumed);
  EXPECT_EQ(first.check.containers, 1U);
  const auto second = must(repository_->scrub({}, {}));
  EXPECT_TRUE(second.check.finished);
  EXPECT_TRUE(second.resumed);
  CheckOptions all;
  all.verify_chunks = true;
  const auto whole = must(repository_->check(all, {}));
  EXPECT_LT(second.check.bytes_read, whole.bytes_read);
  const auto third = must(repository_->scrub({}, {}));
  EXPECT_FALSE(third.resumed);
  EXPECT_EQ(third.check.bytes_read, whole.bytes_read);
}

TEST_P(CheckerTest, AShareOfTheDataCanBeRead) {
  CheckOptions options;
  options.percent = 1;
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 5; ++i) {
    least = std::min(least, must(repository_->check(options, {})).bytes_read);
  }
  EXPECT_LT(least, must(repository_->check({}, {})).bytes_read);
}

TEST_P(CheckerTest, UnknownFilesAndTrailingBytesAreNotesNotDamage) {
  const std::string unknown[] = {path_ + "/NOTES.txt",
                                 path_ + "/series/00000001/active/00000000.txt",
                                 path_ + "/series/00000001/manifests/copy of 00000001.man"};
  for (const auto& path : unknown) std::ofstream(path) << "mine";
  std::filesystem::create_directories(path_ + "/staging/mine/deeper");
  for (const auto& path : {segment_, path_ + "/catalog/data.mdb"}) {
    std::ofstream(path, std::ios::app) << "trailing";
  }
  const auto report = check();
  EXPECT_TRUE(report.damages.empty());
  std::set<std::string> noted;
  for (const auto& note : report.notes) noted.insert(note.where);
  EXPECT_EQ(noted,
            (std::set<std::string>{unknown[0], unknown[1], unknown[2], path_ + "/staging/mine",
                                   segment_, path_ + "/catalog/data.mdb"}));
}

TEST_P(CheckerTest, SoundRepositoryHasNoNotes) { EXPECT_TRUE(check().notes.empty()); }

TEST_P(CheckerTest, ReservedNamesBesideVersionsAreNoted) {
  const auto beside = must(repository_->beside(SeriesId{1}));
  NewFile link;
  link.mode = S_IFLNK | 0777;
  link.symlink_target = "v1";
  for (const char* const name : {"latest", "v1", "v3.partial", "log"}) {
    must(beside->create(kRootIno, name, link));
  }
  const auto logs = must(beside->create(kRootIno, "logs", folder()));
  must(beside->create(logs.ino, "latest", link));
  const auto report = check();
  EXPECT_TRUE(report.damages.empty());
  ASSERT_EQ(report.notes.size(), 3U);
  const std::vector<std::string> names = {"`latest`", "`v1`", "`v3.partial`"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(report.notes[i].where, path_ + "/series/00000001/beside");
    EXPECT_NE(report.notes[i].what.find(names[i]), std::string::npos) << report.notes[i].what;
  }
}

TEST_P(CheckerTest, ReservedNameOfAVersionIsDamage) {
  for (const char* const name : {"latest", "v2.partial"}) {
    change_catalog([&](meta::WriteTxn& txn) {
      auto record = *must(catalog::find_version(txn, SeriesId{1}, VersionNumber{2}));
      record.name = name;
      must(catalog::put_version(txn, record));
    });
    const auto report = check();
    ASSERT_EQ(report.damages.size(), 1U) << name;
    EXPECT_NE(report.damages[0].what.find("version 2 of series 1"), std::string::npos);
  }
}

TEST_P(CheckerTest, ForgedNameOfAVersionIsDamageThatNamesTheRecord) {
  change_catalog([](meta::WriteTxn& txn) {
    auto record = *must(catalog::find_version(txn, SeriesId{1}, VersionNumber{2}));
    record.name = "../escaped";
    must(catalog::put_version(txn, record));
  });
  const auto report = check();
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_NE(report.damages[0].what.find("version 2 of series 1"), std::string::npos);
  EXPECT_EQ(code_of(repository_->find_version(SeriesId{1}, "latest")), ErrorCode::kCorrupt);
  EXPECT_EQ(must(repository_->find_version(SeriesId{1}, "v1")).number, VersionNumber{1});
  EXPECT_EQ(must(repository_->find_version(SeriesId{1}, "invalid-name-2")).number,
            VersionNumber{2});
}

INSTANTIATE_TEST_SUITE_P(Codecs, CheckerTest, testing::Values(Codec::kNone, Codec::kZstd));

}  // namespace
}  // namespace varve::test
