// SPDX-License-Identifier: Apache-2.0
// Tests the check and the repair of index files, which are derived.
#include "pool_fixture.h"
#include "repair_fixture.h"
#include "varve/pool_index.h"

namespace varve::test {
namespace {

using DerivedRepairTest = RepairTest;
INSTANTIATE_TEST_SUITE_P(Codecs, DerivedRepairTest, testing::Values(Codec::kZstd));

std::vector<std::string> files_in(const std::string& directory, const std::string& suffix) {
  std::vector<std::string> found;
  for (const auto& at : fs::directory_iterator(directory)) {
    if (at.path().string().ends_with(suffix)) found.push_back(at.path());
  }
  std::ranges::sort(found);
  return found;
}

std::uint64_t bytes_below(const std::string& directory) {
  std::uint64_t sum = 0;
  for (const auto& at : fs::recursive_directory_iterator(directory)) {
    if (at.is_regular_file()) sum += at.file_size();
  }
  return sum;
}

TEST_P(DerivedRepairTest, DamagedIndexFileOfASeriesIsRemovedAndBuiltAgain) {
  for (const char* suffix : {".run", ".snap"}) {
    const auto file = files_in(in_series(""), suffix).front();
    flip(file, fs::file_size(file) / 2);
    repository_.reset();
    repository_ = reopen(path_);
    EXPECT_EQ(must(repository_->check({}, {})).damages.size(), 1U);
    repair();
    ASSERT_EQ(steps_.size(), 1U) << suffix;
    EXPECT_EQ(steps_[0].kind, RepairStep::Kind::kDerived);
    EXPECT_EQ(fs::path(steps_[0].where).filename(), fs::path(file).filename());
    EXPECT_FALSE(fs::exists(file));
    EXPECT_EQ(must(Repair::plan(path_, {}, true, {}))->steps().size(), 0U);
    repository_ = reopen(path_);
    const auto report = must(repository_->check({}, {}));
    EXPECT_TRUE(report.damages.empty());
    EXPECT_EQ(report.notes.size(), 1U);
    // Most of the next version is known, although its index was lost.
    const auto before = bytes_below(in_series("active"));
    const auto number = must(repository_->open_version(series_, suffix, folder())).number;
    const auto version = must(repository_->writer(series_));
    fill(*version, suffix, 4);
    must(repository_->seal(series_, number, ""));
    EXPECT_LT(bytes_below(in_series("active")), before + 100000);
    EXPECT_TRUE(must(repository_->check({}, {})).notes.empty());
  }
  expect_whole({"v1", "v2", "v3", "v4", ".run", ".snap"});
}

using DerivedPoolRepairTest = PoolTest;

TEST_F(DerivedPoolRepairTest, DamagedFileOfThePoolsIndexIsNamedRemovedAndBuiltAgain) {
  int versions = 0;
  for (const bool zero_chunk : {false, true}) {
    if (zero_chunk) {
      PoolIndexChoice choice;
      choice.kind = PoolIndexKind::kZeroChunk;
      must(repository_->set_pool_index(choice));
      open_for_writing();
      add_version("b", "zero", {{"same", noise(200000, 1)}});
      add_version("b", "zero2", {{"own", noise(150000, 99)}});
    }
    const auto suffixes = zero_chunk ? std::vector<std::string>{".bins", ".log"}
                                     : std::vector<std::string>{".run", ".snap"};
    for (const auto& suffix : suffixes) {
      open_for_writing();
      const auto files = files_in(path_ + "/pool", suffix);
      ASSERT_FALSE(files.empty()) << suffix;
      const auto file = files.front();
      flip(file, suffix == ".log" ? 4 : fs::file_size(file) / 2);
      open_read_only();
      const auto before = check(false);
      ASSERT_EQ(before.damages.size(), 1U) << suffix;
      EXPECT_EQ(before.damages[0].where, file);
      EXPECT_TRUE(before.damages[0].affected.empty());
      repair();
      ASSERT_EQ(steps_.size(), 1U) << suffix;
      EXPECT_EQ(steps_[0].kind, RepairStep::Kind::kDerived);
      EXPECT_EQ(steps_[0].where, file);
      open_for_writing();
      EXPECT_TRUE(check(false).damages.empty()) << suffix;
      const auto bytes = bytes_below(path_ + "/pool/active");
      const auto name = "again" + std::to_string(++versions);
      add_version("b", name, {{"same", noise(200000, 1)}, {"own", noise(150000, 4)}});
      EXPECT_LT(bytes_below(path_ + "/pool/active"), bytes + 50000) << suffix;
      EXPECT_TRUE(check(false).damages.empty()) << suffix;
    }
  }
  expect_whole();
}

}  // namespace
}  // namespace varve::test
