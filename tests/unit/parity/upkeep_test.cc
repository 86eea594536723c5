// SPDX-License-Identifier: Apache-2.0
#include "parity/upkeep.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sample_files.h"

namespace varve::parity {
namespace {

using ParityUpkeep = SampleFiles;
constexpr std::uint32_t kVolume = kVolumeBit;

std::vector<std::uint32_t> members_of(const Group& group) {
  std::vector<std::uint32_t> all;
  for (const auto& member : group.index.members)
    all.push_back(static_cast<std::uint32_t>(member.segment));
  return all;
}

TEST_F(ParityUpkeep, WhatIsNewIsGroupedWithWhatIsNotFullAndOldGroupsGo) {
  std::vector<DataFile> present{add(1, 100'000), add(2, 100'000), add(kVolume + 3, 5000)};
  EXPECT_EQ(keep(present, 5).groups_made, 2U);  // One for the active set and one for the volumes.
  EXPECT_EQ(count_protected(present, groups()), 3U);
  const auto before = groups();
  const auto idle = keep(present, 5);
  EXPECT_TRUE(idle.finished);
  EXPECT_EQ(idle.groups_made, 0U);
  EXPECT_EQ(idle.bytes_read, 0U);
  present.push_back(add(4, 50'000));
  EXPECT_EQ(count_protected(present, groups()), 3U);
  EXPECT_EQ(keep(present, 5).groups_made, 1U);
  const auto after = groups();
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(members_of(after.back()), (std::vector<std::uint32_t>{1, 2, 4}));
  EXPECT_EQ(count_protected(present, after), 4U);
  EXPECT_TRUE(*files->exists(store.path(before.back().number)));  // The group of the volumes.
}

TEST_F(ParityUpkeep, AFullGroupStaysUntilAMemberIsCutOrGoes) {
  // At 25 %, 33 MiB make a group full.
  const std::size_t big = full_group_bytes(25) / 2 + 4096;
  std::vector<DataFile> present{add(1, big), add(2, big), add(3, 9000)};
  EXPECT_EQ(keep(present, 25).groups_made, 2U);
  const auto full = groups().front();
  EXPECT_EQ(members_of(full), (std::vector<std::uint32_t>{1, 2}));
  present.push_back(add(4, 9000));
  const auto little = keep(present, 25);
  EXPECT_EQ(little.groups_made, 1U);
  EXPECT_LT(little.bytes_read, 100'000U);
  present.erase(present.begin());
  ASSERT_TRUE(files->remove(path_of(1)));
  EXPECT_EQ(keep(present, 25).groups_made, 1U);
  ASSERT_EQ(groups().size(), 1U);
  EXPECT_EQ(members_of(groups().front()), (std::vector<std::uint32_t>{2, 3, 4}));
}

TEST_F(ParityUpkeep, ParityGoesWithItsFilesAndWhenItIsTurnedOff) {
  std::vector<DataFile> present{add(1, 100'000), add(kVolume + 2, 100'000)};
  keep(present, 5);
  present.pop_back();
  EXPECT_EQ(keep(present, 5).groups_made, 0U);
  EXPECT_EQ(groups().size(), 1U);
  const auto other = keep(present, 8);  // A different share requires new groups.
  EXPECT_EQ(other.groups_made, 1U);
  ASSERT_EQ(groups().size(), 1U);
  EXPECT_EQ(groups().front().index.percent, 8U);
  keep(present, 0);
  EXPECT_TRUE(groups().empty());
}

// New parity of damaged bytes would preserve the damage.
TEST_F(ParityUpkeep, TheParityOfADamagedFileIsKeptAsItIs) {
  std::vector<DataFile> present{add(1, 100'000), add(2, 100'000)};
  keep(present, 5);
  const auto before = groups().front().number;
  flip(path_of(2), 50'000);
  present.push_back(add(3, 100'000));
  const auto report = keep(present, 5);
  EXPECT_EQ(report.damaged, (std::vector<SegmentNumber>{SegmentNumber{2}}));
  ASSERT_EQ(groups().size(), 2U);
  EXPECT_EQ(groups().front().number, before);
  EXPECT_EQ(members_of(groups().back()), (std::vector<std::uint32_t>{1, 3}));
  flip(path_of(2), 50'000);  // Repaired.
  EXPECT_TRUE(keep(present, 5).damaged.empty());
  ASSERT_EQ(groups().size(), 1U);
  EXPECT_EQ(members_of(groups().front()), (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST_F(ParityUpkeep, ACutIsNoDamage) {
  std::vector<DataFile> present{add(1, 100'000), add(2, 100'000)};
  keep(present, 5);
  const auto cut = files->open(path_of(2), io::OpenMode::kReadWrite);
  ASSERT_TRUE((*cut)->truncate(40'000));
  present[1].bytes = 40'000;
  EXPECT_EQ(count_protected(present, groups()), 0U);
  const auto report = keep(present, 5);
  EXPECT_TRUE(report.damaged.empty());
  EXPECT_EQ(report.groups_made, 1U);
  EXPECT_EQ(count_protected(present, groups()), 2U);
}

TEST_F(ParityUpkeep, StoppedItLeavesWholeGroupsAndNothingElse) {
  std::vector<DataFile> present{add(1, 100'000)};
  keep(present, 5);
  present.push_back(add(2, 3U << 20));
  KeepOptions options;
  options.percent = 5;
  options.pass = [](std::uint64_t) { return false; };
  const auto report = keep_parity(store, kStore, present, options);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->finished);
  EXPECT_EQ(groups().size(), 1U);
  EXPECT_EQ(files->list("s/parity")->size(), 1U);
  // Removes the temporary file of a killed process.
  write("s/parity/00000009.par.tmp", 0, std::vector<std::byte>(100));
  EXPECT_TRUE(keep(present, 5).finished);
  EXPECT_EQ(files->list("s/parity")->size(), 1U);
}

TEST_F(ParityUpkeep, AFullDiskAndOneThatFailsLeaveTheOlderParity) {
  std::vector<DataFile> present{add(1, 100'000)};
  keep(present, 5);
  present.push_back(add(2, 100'000));
  KeepOptions options;
  options.percent = 5;
  faulty->faults.disk_full = true;
  const auto full = keep_parity(store, kStore, present, options);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), ErrorCode::kNoSpace);
  faulty->faults.disk_full = false;
  faulty->faults.writes_fail = true;
  EXPECT_FALSE(keep_parity(store, kStore, present, options));
  faulty->faults.writes_fail = false;
  EXPECT_EQ(files->list("s/parity")->size(), 1U);
  EXPECT_EQ(count_protected(present, groups()), 1U);
  EXPECT_TRUE(keep(present, 5).finished);
  EXPECT_EQ(count_protected(present, groups()), 2U);
}

TEST_F(ParityUpkeep, AFileThatIsGoneOrTooShortIsLeftOut) {
  std::vector<DataFile> present{
      add(1, 100'000), {SegmentNumber{2}, 4096, false, 1}, add(3, 70'000)};
  present[2].bytes += 4096;
  const auto report = keep(present, 5);
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.damaged, (std::vector<SegmentNumber>{SegmentNumber{2}, SegmentNumber{3}}));
  ASSERT_EQ(groups().size(), 1U);
  EXPECT_EQ(members_of(groups().front()), (std::vector<std::uint32_t>{1}));
}

}  // namespace
}  // namespace varve::parity
