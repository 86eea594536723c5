// SPDX-License-Identifier: Apache-2.0
#include "maintain/check_record.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/coding.h"
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

TEST_F(CheckRecord, ARecordThatCannotBeWrittenIsDropped) {
  record_check(*files_, "/nowhere", clock_, {kData, kData, 0});
  EXPECT_TRUE(read_earlier_checks(*files_, "/nowhere").empty());
}

}  // namespace
}  // namespace varve::maintain
