// SPDX-License-Identifier: Apache-2.0
// Measuring the disk: what is found is used and kept, and nothing is measured without need.
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>

#include "catalog/disk_record.h"
#include "io/posix_file_system.h"
#include "meta/schema.h"
#include "repo/disk_costs.h"
#include "store/segment_files.h"
#include "support/temp_repository.h"

namespace varve::repo {
namespace {

using varve::test::must;

class CostsSink final : public restore::ReadService {
 public:
  Result<std::unique_ptr<restore::ReadHandle>> open(restore::ReadableFile /*file*/) override {
    return Error(ErrorCode::kInvalid, "there are no files");
  }
  void set_costs(const restore::ReadCosts& costs) override {
    const std::lock_guard lock(mutex_);
    costs_ = costs;
    changed_.notify_all();
  }
  [[nodiscard]] const restore::ReadMetrics& metrics() const override { return metrics_; }

  [[nodiscard]] std::optional<restore::ReadCosts> costs() {
    const std::lock_guard lock(mutex_);
    return costs_;
  }
  [[nodiscard]] bool await_costs() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [this] { return costs_.has_value(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<restore::ReadCosts> costs_;
  base::Metrics registry_;
  restore::ReadMetrics metrics_{registry_};
};

class FixedClock final : public base::Clock {
 public:
  [[nodiscard]] Timestamp now() const override { return {seconds, 0}; }
  std::int64_t seconds = 1'700'000'000;
};

class DiskCostsTest : public testing::Test {
 protected:
  DiskCostsTest() : files_(io::make_posix_file_system()), catalog_(open()) {}
  meta::Env open() {
    std::filesystem::create_directories(directory_.path() + "/catalog");
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    return must(meta::Env::open(directory_.path() + "/catalog", options));
  }
  // Files without blocks: they are read fast, but they are read.
  void add_segments(int count) {
    const std::string active = directory_.path() + "/series/00000001/active";
    std::filesystem::create_directories(active);
    for (int i = 0; i < count; ++i) {
      const std::string path = active + "/" + store::segment_name(static_cast<SegmentNumber>(i));
      std::ofstream(path).put('x');
      std::filesystem::resize_file(path, 64U << 20);
    }
  }
  DiskCosts::Parts parts(CostsSink& sink) {
    DiskCosts::Parts parts;
    parts.series_directory = directory_.path() + "/series";
    parts.files = files_.get();
    parts.catalog = &catalog_;
    parts.clock = &clock_;
    parts.service = &sink;
    return parts;
  }
  std::optional<catalog::DiskRecord> record() {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    return must(catalog::find_disk_record(txn));
  }
  void put(const catalog::DiskRecord& record) {
    auto txn = must(meta::WriteTxn::begin(catalog_));
    must(catalog::put_disk_record(txn, record));
    must(txn.commit());
  }

  test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_;
  meta::Env catalog_;
  FixedClock clock_;
};

TEST_F(DiskCostsTest, MeasuresOnceAndKeepsWhatItFound) {
  add_segments(5);
  CostsSink first;
  {
    DiskCosts costs(parts(first));
    costs.on_reader();
    ASSERT_TRUE(first.await_costs());
  }
  // The measurement may have been stopped between using and keeping what it found.
  for (int i = 0; i < 20 && !record(); ++i) {
    CostsSink again;
    DiskCosts costs(parts(again));
    costs.on_reader();
    ASSERT_TRUE(again.await_costs());
  }
  ASSERT_TRUE(record().has_value());
  EXPECT_EQ(record()->measured_seconds, clock_.seconds);
  EXPECT_GT(record()->bytes_per_second, 1000U);

  std::filesystem::remove_all(directory_.path() + "/series/00000001");
  CostsSink second;
  DiskCosts costs(parts(second));
  costs.on_reader();
  EXPECT_TRUE(second.costs().has_value()) << "known at once, without a file to measure";
}

TEST_F(DiskCostsTest, ClosingMeasuresWhatNobodyHasRead) {
  add_segments(5);
  CostsSink sink;
  DiskCosts costs(parts(sink));
  costs.on_close();
  EXPECT_TRUE(sink.costs().has_value());
  ASSERT_TRUE(record().has_value());
  EXPECT_EQ(record()->measured_seconds, clock_.seconds);
}

TEST_F(DiskCostsTest, WhatIsKnownIsNotMeasuredAtTheEnd) {
  add_segments(5);
  for (const std::int64_t seconds : {clock_.seconds, clock_.seconds + 1}) {
    clock_.seconds = seconds;
    CostsSink sink;
    DiskCosts(parts(sink)).on_close();
  }
  EXPECT_EQ(record()->measured_seconds, clock_.seconds - 1);
}

TEST_F(DiskCostsTest, WhoOnlyReadsMeasuresNothing) {
  add_segments(5);
  CostsSink sink;
  auto of_reader = parts(sink);
  of_reader.read_only = true;
  DiskCosts costs(of_reader);
  costs.on_reader();
  costs.on_close();
  costs.stop();
  EXPECT_FALSE(sink.costs().has_value());
  EXPECT_FALSE(record().has_value());
}

TEST_F(DiskCostsTest, MeasuresNothingInASmallRepository) {
  add_segments(3);
  CostsSink sink;
  DiskCosts costs(parts(sink));
  costs.on_reader();
  costs.stop();
  EXPECT_FALSE(sink.costs().has_value());
  EXPECT_FALSE(record().has_value());
}

TEST_F(DiskCostsTest, RecordsOfAnotherDiskOrOfLongAgoAreNotUsed) {
  std::filesystem::create_directories(directory_.path() + "/series");
  const auto space = must(files_->space(directory_.path() + "/series"));
  catalog::DiskRecord good;
  good.request_nanoseconds = 8'000'000;
  good.bytes_per_second = 150'000'000;
  good.disk_bytes = space.total_bytes();
  good.measured_seconds = clock_.seconds - 86400;
  const auto is_used = [this](const catalog::DiskRecord& record) {
    put(record);
    CostsSink sink;
    DiskCosts costs(parts(sink));
    costs.on_reader();
    costs.stop();
    return sink.costs() == restore::costs_of_disk(0.008, 150e6);
  };
  EXPECT_TRUE(is_used(good));
  catalog::DiskRecord bad = good;
  bad.disk_bytes += 4096;
  EXPECT_FALSE(is_used(bad));
  bad = good;
  bad.measured_seconds = clock_.seconds - 31 * 86400;
  EXPECT_FALSE(is_used(bad));
  bad.measured_seconds = clock_.seconds + 1;
  EXPECT_FALSE(is_used(bad)) << "from the future";
}

}  // namespace
}  // namespace varve::repo
