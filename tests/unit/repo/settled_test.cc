// SPDX-License-Identifier: Apache-2.0
// The note that a repository is settled: it spares the next writer the look at every series, and
// never hides what a crash, a repair or an older catalog leaves to be done.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/coding.h"
#include "support/file_content.h"
#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class Settled : public testing::Test {
 protected:
  Settled() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    store("v1");
  }

  void store(const std::string& name) {
    const auto number = must(repository_->open_version(series_, name, folder())).number;
    write_file(*must(repository_->writer(series_)), kRootIno, "f", noise(20000, ++files_));
    must(repository_->seal(series_, number, ""));
  }
  void close() {
    must(repository_->close());
    repository_.reset();
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path_ + "/" + name, std::ios::binary);
    return varve::test::rest_of(file);
  }
  std::string note() const { return read("settled"); }
  bool is_void() const { return note().find_first_not_of('\0') == std::string::npos; }
  std::string labels() const { return path_ + "/series/00000001/labels"; }

  const TempDirectory directory_;
  const std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::uint64_t files_ = 0;
};

TEST_F(Settled, ANoteIsWrittenAtTheCloseAndVoidFromTheFirstChangeOn) {
  EXPECT_TRUE(is_void());
  close();
  const auto first = note();
  EXPECT_FALSE(is_void());
  repository_ = reopen(path_);
  EXPECT_EQ(note(), first) << "nothing has changed yet";
  close();
  EXPECT_EQ(note(), first);
  repository_ = reopen(path_);
  store("v2");
  EXPECT_TRUE(is_void());
  close();
  EXPECT_FALSE(is_void());
  EXPECT_NE(note(), first);
}

TEST_F(Settled, WithoutACloseTheNextWriterCompletesLabels) {
  close();
  const auto old_labels = read("series/00000001/labels");
  repository_ = reopen(path_);
  store("v2");
  const auto copy = directory_.path() + "/crashed";
  copy_crashed(path_, copy);
  close();
  const auto expected = read("series/00000001/labels");
  // The crash came before the labels were written.
  std::ofstream(copy + "/series/00000001/labels", std::ios::binary) << old_labels;
  fs::remove_all(path_);
  fs::rename(copy, path_);
  repository_ = reopen(path_);
  EXPECT_NE(read("series/00000001/labels"), old_labels);
  close();
  EXPECT_FALSE(is_void());
  const auto report = must(reopen(path_)->check({}, {}));
  EXPECT_TRUE(report.damages.empty());
}

TEST_F(Settled, AnOlderCatalogIsRefusedWithAndWithoutANote) {
  close();
  const auto copy = directory_.path() + "/old-catalog";
  fs::copy(path_ + "/catalog", copy, fs::copy_options::recursive);
  const auto old_note = note();
  repository_ = reopen(path_);
  store("v2");
  const auto crashed = directory_.path() + "/crashed";
  copy_crashed(path_, crashed);
  close();
  for (const auto& path : {path_, crashed}) {
    fs::remove_all(path + "/catalog");
    fs::copy(copy, path + "/catalog", fs::copy_options::recursive);
    for (const bool with_its_note : {false, true}) {
      if (with_its_note) std::ofstream(path + "/settled", std::ios::binary) << old_note;
      const auto opened = Repository::open(path, quiet_options());
      ASSERT_FALSE(opened) << path << (with_its_note ? " with its note" : "");
      EXPECT_EQ(opened.error().code(), ErrorCode::kCorrupt);
    }
  }
}

TEST_F(Settled, UnknownFilesStayWhileFilesOfTheCatalogAreMissing) {
  const std::string active = path_ + "/series/00000001/active/";
  const auto unknown = active + "00000063.seg";
  for (const bool lacks : {false, true}) {
    close();
    std::ofstream(unknown, std::ios::binary) << "data of an older state";
    if (lacks) fs::remove(active + "00000000.seg");
    repository_ = reopen(path_);
    static_cast<void>(repository_->open_version(series_, lacks ? "b" : "a", folder()));
    EXPECT_EQ(fs::exists(unknown), lacks);
  }
}

TEST_F(Settled, ARepairMakesTheNextWriterLookAtEverySeries) {
  close();
  fs::remove(labels());
  fs::remove(path_ + "/series/00000001/manifests/00000001.man");
  // A repair holds the lock until it is destroyed.
  must(Repair::plan(path_, {}, false, {})).reset();
  repository_ = reopen(path_);
  EXPECT_TRUE(fs::exists(labels()));
  EXPECT_TRUE(fs::exists(path_ + "/series/00000001/manifests/00000001.man"));
}

TEST_F(Settled, LabelsThatCannotBeWrittenAtTheOpeningLeaveWork) {
  close();
  fs::remove(path_ + "/settled");
  fs::remove(labels());
  const auto in_the_way = labels() + ".tmp";
  fs::create_directories(in_the_way + "/x");
  repository_ = reopen(path_);
  EXPECT_EQ(code_of(repository_->close()), ErrorCode::kIncomplete);
  repository_.reset();
  EXPECT_FALSE(fs::exists(labels()));
  EXPECT_TRUE(is_void()) << "the labels are missing";
  fs::remove_all(in_the_way);
  repository_ = reopen(path_);
  close();
  EXPECT_TRUE(fs::exists(labels()));
  EXPECT_FALSE(is_void());
}

TEST_F(Settled, ADamagedNoteIsNoNote) {
  close();
  auto damaged = note();
  damaged[9] = static_cast<char>(damaged[9] ^ 1);
  std::ofstream(path_ + "/settled", std::ios::binary) << damaged;
  fs::remove(labels());
  repository_ = reopen(path_);
  EXPECT_TRUE(fs::exists(labels()));
  close();
  EXPECT_EQ(note().size(), 48U);
  EXPECT_FALSE(is_void());
}

// Without a note, all series have to be looked at once.
TEST_F(Settled, TheNoteListsTheSeriesThatMayHaveToBeArranged) {
  const auto format = [this] {
    return base::load_le<std::uint32_t>(base::as_bytes(note()).data() + 4);
  };
  const auto count = [this] {
    return base::load_le<std::uint64_t>(base::as_bytes(note()).data() + 16);
  };
  constexpr std::uint32_t kList = 2;
  const auto other = must(repository_->create_series("other")).id;
  close();
  EXPECT_EQ(format(), kList) << "a new repository has no other series";
  fs::remove(path_ + "/settled");
  repository_ = reopen(path_);
  store("v1b");
  close();
  EXPECT_NE(format(), kList);
  EXPECT_EQ(count(), 0U) << "any series";
  auto options = quiet_options();
  options.arrange = true;
  repository_ = reopen(path_, options);
  must(repository_->arrange(series_, {}));
  must(repository_->arrange(other, {}));
  close();
  EXPECT_NE(format(), kList);
  EXPECT_EQ(count(), 1U) << "no series";
  repository_ = reopen(path_);
  store("v2");
  close();
  EXPECT_EQ(format(), kList);
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(note().size(), 52U);
  repository_ = reopen(path_);
  must(repository_->set_arrange_settings(must(repository_->arrange_settings())));
  close();
  EXPECT_EQ(count(), 0U) << "any series";
}

TEST_F(Settled, ASeriesOfTheListThatWasArrangedIsTakenOut) {
  auto options = quiet_options();
  options.arrange = true;
  close();
  repository_ = reopen(path_, options);
  must(repository_->arrange(series_, {}));
  store("v2");
  close();
  repository_ = reopen(path_);
  EXPECT_LE(metric(*repository_, "varve_catalog_records_read_total"), 5U) << "the list counts";
  must(repository_->arrange(series_, {}));
  close();
  EXPECT_EQ(note().size(), 48U);
  EXPECT_EQ(base::load_le<std::uint64_t>(base::as_bytes(note()).data() + 16), 1U);
}

// Opening and closing cost records by the number of series, but not for each of their versions, and
// read only the labels of a series, whose next number is compared with its record.
TEST_F(Settled, ASettledRepositoryIsOpenedWithoutALookAtItsVersions) {
  for (int i = 2; i < 12; ++i) store("v" + std::to_string(i));
  close();
  repository_ = reopen(path_);
  const auto settled = metric(*repository_, "varve_catalog_records_read_total");
  close();
  fs::remove(path_ + "/settled");
  repository_ = reopen(path_);
  const auto unsettled = metric(*repository_, "varve_catalog_records_read_total");
  EXPECT_LE(settled, 5U);
  EXPECT_GT(unsettled, 40U);
}

// Each text of an encrypted repository is new, so labels that are written again differ.
TEST(SettledRepair, SecondRepairOfAnEncryptedRepositoryWritesNoLabels) {
  const TempDirectory directory;
  const auto path = directory.path() + "/r";
  must(Repository::create(path, small_chunks(Codec::kNone), encrypted()));
  const auto options = with_key(quiet_options());
  {
    const auto repository = reopen(path, options);
    must(repository->create_series("s"));
    must(repository->close());
  }
  RepairOptions how;
  how.key = options.key;
  std::string before;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(must(Repair::plan(path, how, false, {}))->steps().empty());
    must(reopen(path, options)->close());
    std::ifstream file(path + "/series/00000001/labels", std::ios::binary);
    const std::string now = varve::test::rest_of(file);
    EXPECT_TRUE(i == 0 || now == before) << "after repair " << i;
    before = now;
  }
}

}  // namespace
}  // namespace varve::test
