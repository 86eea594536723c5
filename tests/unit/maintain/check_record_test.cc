// SPDX-License-Identifier: Apache-2.0
#include "maintain/check_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/id_runs.h"
#include "base/ids.h"
#include "io/memory_file_system.h"

namespace varve::maintain {
namespace {

class TestClock final : public base::Clock {
 public:
  [[nodiscard]] Timestamp now() const override { return {seconds, 0}; }
  std::int64_t seconds = 1000;
};

class CheckRecord : public testing::Test {
 protected:
  CheckRecord() { EXPECT_TRUE(files_->make_directory("/r")); }

  std::vector<EarlierCheck> record(const CheckEnd& end) {
    record_check(*files_, "/r", clock_, end);
    ++clock_.seconds;
    return read_earlier_checks(*files_, "/r");
  }

  const std::unique_ptr<io::FileSystem> files_ = io::make_memory_file_system();
  TestClock clock_;
};

constexpr auto kStructure = CheckDepth::kStructure;
constexpr auto kData = CheckDepth::kData;
constexpr auto kChunks = CheckDepth::kChunks;

TEST_F(CheckRecord, AQuickCheckDoesNotHideDamageOfDeeperOnes) {
  EXPECT_EQ(record({kChunks, kChunks, 3}), (std::vector<EarlierCheck>{{kChunks, 1000, 3}}));
  EXPECT_EQ(record({kStructure, kStructure, 0}),
            (std::vector<EarlierCheck>{{kStructure, 1001, 0}, {kChunks, 1000, 3}}));
  EXPECT_EQ(record({kData, kData, 0}),
            (std::vector<EarlierCheck>{{kData, 1002, 0}, {kChunks, 1000, 3}}));
  EXPECT_EQ(record({kChunks, kChunks, 0}), (std::vector<EarlierCheck>{{kChunks, 1003, 0}}));
}

TEST_F(CheckRecord, ACheckOfAPartCountsForItsDamageAlone) {
  EXPECT_EQ(record({kChunks, kChunks, 2}), (std::vector<EarlierCheck>{{kChunks, 1000, 2}}));
  EXPECT_EQ(record({kStructure, kChunks, 0}),
            (std::vector<EarlierCheck>{{kStructure, 1001, 0}, {kChunks, 1000, 2}}));
  EXPECT_EQ(record({kStructure, kChunks, 5}), (std::vector<EarlierCheck>{{kChunks, 1002, 5}}));
}

TEST_F(CheckRecord, ADamagedOrForgedRecordIsNone) {
  const std::vector<EarlierCheck> checks{{kStructure, -5, 0}, {kChunks, 7, 1}};
  const std::string text = encode_earlier_checks(checks);
  EXPECT_EQ(decode_earlier_checks(text), checks);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(decode_earlier_checks(changed).empty()) << i;
  }
  EXPECT_TRUE(decode_earlier_checks("").empty());
  EXPECT_TRUE(decode_earlier_checks(text + text).empty());
  // A record that is valid by its checksum, but not in order.
  EXPECT_TRUE(decode_earlier_checks(encode_earlier_checks({checks[1], checks[0]})).empty());
}

TEST_F(CheckRecord, ADamagedFileIsDamageUntilTheNextCheck) {
  (void)record({kChunks, kChunks, 2});
  ASSERT_TRUE(files_->write_file_atomically("/r", "checked", base::as_bytes(std::string("# Wh"))));
  const std::vector<EarlierCheck> damaged{{kStructure, 0, 1}};
  EXPECT_EQ(read_earlier_checks(*files_, "/r"), damaged);
  const std::string large(5000, 'x');
  ASSERT_TRUE(files_->write_file_atomically("/r", "checked", base::as_bytes(large)));
  EXPECT_EQ(read_earlier_checks(*files_, "/r"), damaged);
  EXPECT_EQ(record({kChunks, kChunks, 0}), (std::vector<EarlierCheck>{{kChunks, 1001, 0}}));
}

base::IdRuns ids(std::vector<base::IdRun> runs) { return base::IdRuns::from(std::move(runs)); }

TEST_F(CheckRecord, NamesLostChunksUntilTheyAreTaken) {
  const LostChunks found{{StoreId{0}, ids({{ChunkId::make(VersionNumber{1U << 31}, 7), 3}})},
                         {StoreId{2}, ids({{ChunkId::make(VersionNumber{1}, 0), 1}})}};
  (void)record({kChunks, kChunks, 2, found});
  EXPECT_EQ(read_lost_chunks(*files_, "/r"), found);
  // A check of the structure, or of a part of the data, says nothing about them.
  (void)record({kStructure, kStructure, 0});
  const LostChunks more{{StoreId{2}, ids({{ChunkId::make(VersionNumber{1}, 1), 4}})}};
  (void)record({kStructure, kChunks, 1, more});
  auto all = found;
  all[StoreId{2}] = ids({{ChunkId::make(VersionNumber{1}, 0), 5}});
  EXPECT_EQ(read_lost_chunks(*files_, "/r"), all);
  const auto checks = read_earlier_checks(*files_, "/r");
  forget_lost_chunks(*files_, "/r", found);
  EXPECT_EQ(read_lost_chunks(*files_, "/r"), more);
  forget_lost_chunks(*files_, "/r", all);
  EXPECT_TRUE(read_lost_chunks(*files_, "/r").empty());
  EXPECT_EQ(read_earlier_checks(*files_, "/r"), checks);
}

TEST_F(CheckRecord, AWholeCheckWithoutDamageDropsLostChunks) {
  const LostChunks found{{StoreId{1}, ids({{ChunkId::make(VersionNumber{1}, 0), 1}})}};
  (void)record({kChunks, kChunks, 1, found});
  (void)record({kData, kData, 0});
  EXPECT_TRUE(read_lost_chunks(*files_, "/r").empty());
}

TEST_F(CheckRecord, ADamagedOrForgedListOfLostChunksIsNone) {
  RecordOfChecks sound;
  sound.checks = {{kChunks, 7, 1}};
  sound.lost[StoreId{1}] = ids(
      {{ChunkId::make(VersionNumber{1}, 5), 2}, {ChunkId::make(VersionNumber{2}, 0xffffffff), 1}});
  const std::string text = encode_check_record(sound);
  EXPECT_EQ(decode_check_record(text), sound);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(decode_check_record(changed).has_value()) << i;
  }
  const auto forged = [](const std::string& line) {
    const std::string head =
        "# When checks ended (Unix seconds), and damages that they found.\n" + line + "\n";
    return head + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(head)));
  };
  EXPECT_TRUE(decode_check_record(forged("lost = 1 0000000100000005 2")).has_value());
  for (const char* line :
       {"lost = 1 0000000100000005 0", "lost = 1 00000001ffffffff 2",
        "lost = 1 0000000100000005 4294967296", "lost = 1 100000005 2",
        "lost = 4294967296 0000000100000005 2", "lost = 1 000000010000000x 2", "lost = 1",
        "lost = 1 0000000100000005 2 3", "lost = 2 0000000100000005 2\nlost = 1 0000000100000005 2",
        "lost = 1 0000000100000005 2\nlost = 1 0000000100000006 2"}) {
    EXPECT_FALSE(decode_check_record(forged(line)).has_value()) << line;
  }
}

TEST_F(CheckRecord, ARecordIsBounded) {
  std::vector<base::IdRun> runs;
  for (std::uint32_t i = 0; i < kRecordedRunsMax + 10; ++i) {
    runs.push_back({ChunkId::make(VersionNumber{0x7fffffff}, 2 * i), 1});
  }
  const auto checks = record({kChunks, kChunks, 1, {{StoreId{0xffffffff}, ids(runs)}}});
  EXPECT_EQ(checks, (std::vector<EarlierCheck>{{kChunks, 1000, 1}}));
  const auto named = read_lost_chunks(*files_, "/r");
  EXPECT_EQ(named.at(StoreId{0xffffffff}).size(), kRecordedRunsMax);
}

TEST_F(CheckRecord, ARecordThatCannotBeWrittenIsDropped) {
  record_check(*files_, "/nowhere", clock_, {kData, kData, 0});
  EXPECT_TRUE(read_earlier_checks(*files_, "/nowhere").empty());
}

TEST_F(CheckRecord, DamageFoundByReadsKeepsTheResultsOfChecks) {
  record({kData, kData, 0});
  const LostChunks first{
      {StoreId{1}, base::IdRuns::from({{ChunkId::make(VersionNumber{2}, 0), 3}})}};
  const LostChunks second{
      {StoreId{1}, base::IdRuns::from({{ChunkId::make(VersionNumber{2}, 3), 1}})},
      {kPoolStore, base::IdRuns::from({{kFirstPoolId, 1}})}};
  EXPECT_TRUE(record_lost_chunks(*files_, "/r", first));
  EXPECT_EQ(read_lost_chunks(*files_, "/r"), first);
  EXPECT_TRUE(record_lost_chunks(*files_, "/r", second));
  const auto all = read_lost_chunks(*files_, "/r");
  EXPECT_EQ(all.at(StoreId{1}).size(), 4U);
  EXPECT_EQ(all.at(kPoolStore), second.at(kPoolStore));
  EXPECT_EQ(read_earlier_checks(*files_, "/r"), (std::vector<EarlierCheck>{{kData, 1000, 0}}));
  record({kData, kData, 0});  // Has read all data, and found it sound.
  EXPECT_TRUE(read_lost_chunks(*files_, "/r").empty());
}

TEST_F(CheckRecord, DamageFoundByReadsNeedsNoRecord) {
  const LostChunks found{
      {StoreId{1}, base::IdRuns::from({{ChunkId::make(VersionNumber{2}, 0), 3}})}};
  EXPECT_TRUE(record_lost_chunks(*files_, "/r", found));
  EXPECT_EQ(read_lost_chunks(*files_, "/r"), found);
  EXPECT_TRUE(read_earlier_checks(*files_, "/r").empty());
  EXPECT_FALSE(record_lost_chunks(*files_, "/missing", found));
}

}  // namespace
}  // namespace varve::maintain
