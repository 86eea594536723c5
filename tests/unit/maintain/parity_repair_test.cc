// SPDX-License-Identifier: Apache-2.0
// Tests repair from parity, without any copy of the damaged data.
#include <algorithm>
#include <set>
#include <string>

#include "repair_fixture.h"

namespace varve::test {
namespace {

class ParityRepairTest : public RepairTest {
 protected:
  void want_parity(std::uint32_t percent) {
    auto settings = must(repository_->arrange_settings());
    settings.parity_percent = percent;
    must(repository_->set_arrange_settings(settings));
    must(repository_->arrange(series_, {}));
  }
  // Damages a byte each of the header, the table and the data in the first container of a segment.
  void damage_a_segment() {
    const auto file = fs::directory_iterator(in_series("active"))->path();
    for (const std::uint64_t at :
         {std::uint64_t{21}, std::uint64_t{300}, fs::file_size(file) / 2}) {
      flip(file, at);
    }
  }
  bool has_step(RepairStep::Kind kind) const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [&](const auto& step) { return step.kind == kind; });
  }
};

TEST_P(ParityRepairTest, WhatIsDamagedComesBackWithoutACopy) {
  want_parity(25);
  damage_a_segment();
  const auto report = repair();
  EXPECT_TRUE(has_step(RepairStep::Kind::kParity));
  EXPECT_FALSE(has_step(RepairStep::Kind::kQuarantine));
  EXPECT_EQ(report.containers_restored, 1U);
  EXPECT_EQ(report.chunks_quarantined, 0U);
  repair();
  EXPECT_TRUE(steps_.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(ParityRepairTest, CheckWithoutKeyNotesMissingParity) {
  want_parity(25);
  EXPECT_TRUE(must(check_outer(path_, {}, {})).notes.empty());
  std::set<std::string> groups;
  for (const auto& file : fs::directory_iterator(in_series("parity"))) groups.insert(file.path());
  ASSERT_GE(groups.size(), 2U);
  fs::remove(*groups.begin());
  const auto report = must(check_outer(path_, {}, {}));
  EXPECT_TRUE(report.damages.empty());
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes.front().what.find("have no parity"), std::string::npos);
  must(repository_->arrange(series_, {}));
  EXPECT_TRUE(must(check_outer(path_, {}, {})).notes.empty());
}

TEST_P(ParityRepairTest, ItComesBackWhenTheCatalogIsLostToo) {
  want_parity(25);
  lose_catalog();
  damage_a_segment();
  const auto report = repair();
  EXPECT_EQ(report.containers_restored, 1U);
  EXPECT_EQ(report.versions, 4U);
  EXPECT_TRUE(report.problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
  EXPECT_EQ(must(repository_->arrange_settings()).parity_percent, 25U);
}

TEST_P(ParityRepairTest, ParityOfDamagedBytesIsNotTakenForTheTruth) {
  repository_.reset();
  damage_a_segment();
  repository_ = reopen(path_);
  want_parity(25);
  const auto report = repair();
  EXPECT_FALSE(has_step(RepairStep::Kind::kParity));
  EXPECT_EQ(report.containers_restored, 0U);
  EXPECT_NE(report.chunks_quarantined, 0U);
}

// Opening a version returns volumes to the active set for a while: their role changes, but no byte.
TEST_P(ParityRepairTest, OpeningAVersionMakesNoParityAgain) {
  want_parity(25);
  ASSERT_FALSE(fs::is_empty(in_series("volumes")));
  const auto names = [this] {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(in_series("parity"))) {
      all.insert(entry.path().filename());
    }
    return all;
  };
  const auto before = names();
  ASSERT_FALSE(before.empty());
  must(repository_->open_version(series_, "next", folder()));
  must(repository_->arrange(series_, {}));
  EXPECT_EQ(names(), before);
}

INSTANTIATE_TEST_SUITE_P(Codecs, ParityRepairTest, testing::Values(Codec::kZstd));

}  // namespace
}  // namespace varve::test
